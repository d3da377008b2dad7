# Headers, static libraries, one shared library, the binary with its manual pages and completions;
# find_package(once COMPONENTS ...) and pkg-config.
#
# Each component has an export set of its own, so that a program that asks for `memory` needs none
# of the packages of `sqlite`. What is installed is in one of three parts, the packages of `make
# package`: binary, library, development.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(once_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/once)
set(once_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What a linked target is called by find_package, and by pkg-config.
set(once_package_of_fmt::fmt fmt)
set(once_pc_of_fmt::fmt fmt)
set(once_package_of_Threads::Threads Threads)
set(once_flag_of_Threads::Threads -pthread)
set(once_package_of_OpenSSL::Crypto OpenSSL)
set(once_pc_of_OpenSSL::Crypto libcrypto)
set(once_package_of_OpenSSL::SSL OpenSSL)
set(once_pc_of_OpenSSL::SSL libssl)
set(once_package_of_SQLite::SQLite3 SQLite3)
set(once_pc_of_SQLite::SQLite3 sqlite3)
set(once_package_of_simdjson::simdjson simdjson)
set(once_pc_of_simdjson::simdjson simdjson)
set(once_package_of_nlohmann_json::nlohmann_json nlohmann_json)
set(once_pc_of_nlohmann_json::nlohmann_json nlohmann_json)
set(once_package_of_PostgreSQL::PostgreSQL PostgreSQL)
set(once_pc_of_PostgreSQL::PostgreSQL libpq)
# Libraries without a find module: PkgConfig::NAME is made again from its pkg-config module.
set(once_pc_of_PkgConfig::mariadb libmariadb)
set(once_pc_of_PkgConfig::hiredis hiredis)
set(once_pc_of_PkgConfig::rdkafka rdkafka)
set(once_pc_of_PkgConfig::rabbitmq librabbitmq)
set(once_pc_of_PkgConfig::lz4 liblz4)
set(once_pc_of_PkgConfig::zstd libzstd)
set(once_pc_of_PkgConfig::zlib zlib)
set(once_pc_of_PkgConfig::snappy snappy)

# The prefix is relative to the file: an installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX OUTPUT_VARIABLE once_pc_up
  BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
function(once_write_pc name description requires libs cflags)
  set(file ${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc)
  file(WRITE ${file} "prefix=\${pcfiledir}/${once_pc_up}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}

Name: ${name}
Description: ${description}
Version: ${PROJECT_VERSION}
Requires: ${requires}
Libs: ${libs}
Cflags: ${cflags}
")
  install(FILES ${file} DESTINATION ${once_pc_dir})
endfunction()

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/once DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(TARGETS once_contract EXPORT once_contract)
install(EXPORT once_contract NAMESPACE once:: FILE once_contract.cmake
  DESTINATION ${once_cmake_dir})
once_write_pc(once-contract "The headers of Once" "" "" "-I\${includedir}")

set(once_installed)
set(once_tables "")
foreach(component ${once_components})
  if(component MATCHES "^(cli|assemble|operate|audit|config)$")
    continue()  # only the binary is for others
  endif()
  list(APPEND once_installed ${component})
  get_target_property(depends once_${component} ONCE_DEPENDS)
  get_target_property(links once_${component} ONCE_LINK)
  set(packages)
  set(modules)
  set(requires once-contract)
  set(libs "-L\${libdir} -lonce_${component}")
  foreach(dependency ${depends})
    list(APPEND requires once-${dependency})
  endforeach()
  foreach(link ${links})
    if(DEFINED once_package_of_${link})
      list(APPEND packages ${once_package_of_${link}})
    elseif(link MATCHES "^PkgConfig::(.*)" AND DEFINED once_pc_of_${link})
      list(APPEND modules ${CMAKE_MATCH_1}=${once_pc_of_${link}})
    else()
      message(WARNING "cmake/install.cmake does not know the package of ${link}; add it there")
    endif()
    if(DEFINED once_pc_of_${link})
      list(APPEND requires ${once_pc_of_${link}})
    endif()
    if(DEFINED once_flag_of_${link})
      string(APPEND libs " ${once_flag_of_${link}}")
    endif()
  endforeach()
  string(APPEND once_tables "set(once_depends_of_${component} ${depends})\n")
  string(APPEND once_tables "set(once_packages_of_${component} ${packages})\n")
  string(APPEND once_tables "set(once_modules_of_${component} ${modules})\n")
  list(JOIN requires " " requires)
  once_write_pc(once-${component} "Once: ${component}" "${requires}" "${libs}" "")
  install(TARGETS once_${component} EXPORT once_${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT once_${component} NAMESPACE once:: FILE once_${component}.cmake
    DESTINATION ${once_cmake_dir})
endforeach()

list(TRANSFORM once_installed PREPEND once- OUTPUT_VARIABLE once_all_pc)
list(JOIN once_all_pc " " once_all_pc)
once_write_pc(once "${PROJECT_DESCRIPTION}" "${once_all_pc}" "" "")

# The shared library holds all components. What is not of namespace once is not for others.
set(once_symbols ${PROJECT_SOURCE_DIR}/cmake/once_symbols.map)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/once_shared.cc CONTENT "// All of it is in archives.\n")
add_library(once_shared SHARED ${PROJECT_BINARY_DIR}/once_shared.cc)
set_target_properties(once_shared PROPERTIES OUTPUT_NAME once EXPORT_NAME shared
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${once_symbols})
set(once_archives)
set(once_links)
foreach(component ${once_installed})
  list(APPEND once_archives $<TARGET_FILE:once_${component}>)
  add_dependencies(once_shared once_${component})
  get_target_property(links once_${component} ONCE_LINK)
  list(APPEND once_links ${links})
endforeach()
list(REMOVE_DUPLICATES once_links)
foreach(link ${once_links})  # their targets are only known in the folders that use them
  if(DEFINED once_package_of_${link})
    find_package(${once_package_of_${link}} REQUIRED)
  endif()
endforeach()
target_link_libraries(once_shared PUBLIC once_contract
  PRIVATE -Wl,--whole-archive ${once_archives} -Wl,--no-whole-archive ${once_links})
target_link_options(once_shared PRIVATE LINKER:--version-script=${once_symbols} LINKER:-z,defs)
add_dependencies(product once_shared)
install(TARGETS once_shared EXPORT once_shared
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(EXPORT once_shared NAMESPACE once:: FILE once_shared.cmake DESTINATION ${once_cmake_dir})
once_write_pc(once-shared "${PROJECT_DESCRIPTION}" "once-contract" "-L\${libdir} -lonce" "")

if(TARGET once)
  include(documents)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/onceConfig.cmake.in
  ${PROJECT_BINARY_DIR}/onceConfig.cmake INSTALL_DESTINATION ${once_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/onceConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/onceConfig.cmake ${PROJECT_BINARY_DIR}/onceConfigVersion.cmake
  DESTINATION ${once_cmake_dir})

include(package)
