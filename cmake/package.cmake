# `make package`: Debian packages. once: the binary, manual pages, completions, the systemd unit.
# libonce0.1: the shared library. libonce-dev: headers, static libraries, files of CMake and
# pkg-config.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME once)
set(CPACK_PACKAGE_CONTACT "The maintainers of Once")
set(CPACK_PACKAGE_VENDOR "Once")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL binary library development)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)

set(abi ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_DEBIAN_BINARY_PACKAGE_NAME once)
set(CPACK_DEBIAN_BINARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_BINARY_DESCRIPTION "the command line")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libonce${abi})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "the shared library")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libonce-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# Those of the static libraries are only needed by who links them; the headers need the first.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libonce${abi} (= ${PROJECT_VERSION}), libexpected-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libfmt-dev, libssl-dev, libsimdjson-dev, \
nlohmann-json3-dev, libsqlite3-dev, libpq-dev, libmariadb-dev, libhiredis-dev, librdkafka-dev, \
librabbitmq-dev, liblz4-dev, libzstd-dev, zlib1g-dev, libsnappy-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "headers and static libraries")
include(CPack)
