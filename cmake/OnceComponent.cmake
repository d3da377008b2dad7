# One folder, one static library, one test program.

set(once_warnings -Wall -Wextra -Wconversion -Wshadow -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # In optimised code g++ 12 sees these where they are not (GCC bugs 105562 and 105651); clang and
  # the sanitizers look for the real ones.
  list(APPEND once_warnings -Wno-maybe-uninitialized -Wno-restrict)
endif()

# once_compile_options(once_log [COLD | TEST])
# What every target is compiled with. COLD: no code of it runs for each message. TEST: it includes
# GoogleTest. Both are optimised less, since the compiler takes most of a build's time.
function(once_compile_options target)
  cmake_parse_arguments(arg "COLD;TEST" "" "" ${ARGN})
  set(level "")
  if(ONCE_SANITIZE)
    set(level -O1)
    if(arg_TEST)
      set(level -O0)
    endif()
  elseif(CMAKE_BUILD_TYPE STREQUAL Release AND (arg_COLD OR arg_TEST))
    set(level -O1)
  endif()
  set(precompiled once_precompiled${level})
  set(header precompiled.h)
  if(arg_TEST)
    set(precompiled once_precompiled_test${level})
    set(header precompiled_test.h)
  endif()
  once_add_options(${target} ${level})
  if(NOT ONCE_PRECOMPILE)
    return()
  endif()
  if(NOT TARGET ${precompiled})
    once_add_precompiled(${precompiled} ${header})
    once_add_options(${precompiled} ${level})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
  once_add_cache_options(${target})
endfunction()

# So that the compiler cache knows a precompiled header by what is in it.
function(once_add_cache_options target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  else()
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

function(once_add_options target)
  # Position-independent, for the shared library; its functions are not replaced from outside.
  target_compile_options(${target} PRIVATE ${once_warnings} -fPIC -fno-semantic-interposition
    ${ARGN})
  if(ONCE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ONCE_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all -g1)
    target_link_options(${target} PRIVATE -fsanitize=${ONCE_SANITIZE})
  endif()
  if(ONCE_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# Headers that are compiled once, for all targets with the same options.
function(once_add_precompiled target header)
  set(source ${PROJECT_BINARY_DIR}/precompiled/${target}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Only here for its precompiled header.\n")
  add_library(${target} OBJECT ${source})
  target_link_libraries(${target} PRIVATE once_contract fmt::fmt)
  if(header STREQUAL precompiled_test.h)
    target_link_libraries(${target} PRIVATE GTest::gtest)
  endif()
  target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/${header})
  once_add_cache_options(${target})
endfunction()

# once_component(log DEPENDS base model LINK OpenSSL::Crypto)
# The library once_<name> from all sources of this folder; its *_test.cc become <name>_test, which
# may link more (TEST_LINK once_memory). Tests that are SINGLE_THREADED are not built for the thread
# sanitizer, which has nothing to find in them. A library of which no code runs for each message is
# COLD: it is built with -O1, in three quarters of the time. An ADAPTER is linked by `open`,
# which knows it as ONCE_WITH_<NAME>.
function(once_component name)
  cmake_parse_arguments(arg "ADAPTER;COLD;SINGLE_THREADED" "" "DEPENDS;LINK;TEST_LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  add_library(once_${name} STATIC ${sources})
  add_library(once::${name} ALIAS once_${name})
  set_target_properties(once_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY once_components ${name})
  if(arg_ADAPTER)
    set_property(GLOBAL APPEND PROPERTY once_adapters ${name})
  endif()
  # What install.cmake has to know about it.
  set_target_properties(once_${name} PROPERTIES ONCE_DEPENDS "${arg_DEPENDS}"
    ONCE_LINK "${arg_LINK}")
  target_include_directories(once_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(once_${name} PUBLIC once_contract)
  foreach(dependency ${arg_DEPENDS})
    target_link_libraries(once_${name} PUBLIC once_${dependency})
  endforeach()
  target_link_libraries(once_${name} PUBLIC ${arg_LINK})
  if(arg_COLD)
    once_compile_options(once_${name} COLD)
  else()
    once_compile_options(once_${name})
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
  # A test runs once for each time it is built; a simulation runs its code for each seed.
  if(arg_LABEL STREQUAL simulation)
    once_compile_options(${name} COLD)
  else()
    once_compile_options(${name} TEST)
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
