# One folder, one static library, one test program.

set(once_warnings -Wall -Wextra -Wconversion -Wshadow -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # In optimised code g++ 12 sees these where they are not (GCC bugs 105562 and 105651); clang and
  # the sanitizers look for the real ones.
  list(APPEND once_warnings -Wno-maybe-uninitialized -Wno-restrict)
endif()

function(once_compile_options target)
  target_compile_options(${target} PRIVATE ${once_warnings})
  if(ONCE_SANITIZE)
    # Optimised a little and with line numbers only: half of the time goes into compiling.
    target_compile_options(${target} PRIVATE -fsanitize=${ONCE_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all -O1 -g1)
    target_link_options(${target} PRIVATE -fsanitize=${ONCE_SANITIZE})
  endif()
  if(ONCE_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# once_component(log DEPENDS base model LINK OpenSSL::Crypto)
# The library once_<name> from all sources of this folder; its *_test.cc become <name>_test, which
# may link more (TEST_LINK once_memory). Tests that are SINGLE_THREADED are not built for the thread
# sanitizer, which has nothing to find in them. A library of which no code runs for each message is
# COLD: it is built with -O1, in three quarters of the time.
function(once_component name)
  cmake_parse_arguments(arg "COLD;SINGLE_THREADED" "" "DEPENDS;LINK;TEST_LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  add_library(once_${name} STATIC ${sources})
  add_library(once::${name} ALIAS once_${name})
  set_target_properties(once_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY once_components ${name})
  # What install.cmake has to know about it.
  set_target_properties(once_${name} PROPERTIES ONCE_DEPENDS "${arg_DEPENDS}"
    ONCE_LINK "${arg_LINK}")
  target_include_directories(once_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(once_${name} PUBLIC once_contract)
  foreach(dependency ${arg_DEPENDS})
    target_link_libraries(once_${name} PUBLIC once_${dependency})
  endforeach()
  target_link_libraries(once_${name} PUBLIC ${arg_LINK})
  once_compile_options(once_${name})
  if(arg_COLD AND CMAKE_BUILD_TYPE STREQUAL Release)
    target_compile_options(once_${name} PRIVATE -O1)
  endif()

  if(arg_SINGLE_THREADED AND ONCE_SANITIZE STREQUAL thread)
    set(tests "")
  endif()
  if(ONCE_TESTS AND tests)
    once_test(${name}_test LABEL unit SOURCES ${tests} LINK once_${name} ${arg_TEST_LINK})
  endif()
endfunction()

# once_test(store_conformance_test LABEL conformance SOURCES a_test.cc LINK once_memory)
# With WHOLE the program is one test, not one for each of its cases: it starts a real server. It
# says with exit code 77 that the machine does not have that.
function(once_test name)
  cmake_parse_arguments(arg "WHOLE" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gtest_main)
  once_compile_options(${name})
  # A test runs once for each time it is built; a simulation runs its code for each seed.
  if(ONCE_SANITIZE AND NOT arg_LABEL STREQUAL simulation)
    target_compile_options(${name} PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL Release)
    target_compile_options(${name} PRIVATE -O1)
  endif()
  include(GoogleTest)
  once_suite(${arg_LABEL} ${name})
  if(arg_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT}
      SKIP_RETURN_CODE 77)
    return()
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${name}: DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
    PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
endfunction()

# All programs of a label can be built by one name: suite_unit, suite_conformance, ...
function(once_suite label target)
  if(NOT TARGET suite_${label})
    add_custom_target(suite_${label})
  endif()
  add_dependencies(suite_${label} ${target})
endfunction()
