# Two commands matter: `make run` shows it, `make test` checks it. The rest is for those who work
# on Once. CMakePresets.json says what the builds are, tools/packages.txt what they need.

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
SANITIZED_LABELS := unit|conformance|simulation
SANITIZED_SUITES := suite_unit suite_conformance suite_simulation
# Many tests wait for a server, a lease or a time-out while another could run.
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
QUIET := --log-level=WARNING
# A first build has no tests, so that it needs no test packages.
CONFIGURE := test -f build/CMakeCache.txt || cmake --preset release $(QUIET) -DONCE_TESTS=OFF; \
	cmake --preset release $(QUIET)

.DEFAULT_GOAL := build

.PHONY: build run test sanitize bench format install package clean help

## The binary build/once and the libraries.
build:
	@tools/install_packages.sh build
	@$(CONFIGURE)
	@cmake --build build -j $(JOBS) --target product

## Duplicates, crashes and kills that do no harm.
run: build
	build/once demo

## Everything, and a list of what was skipped.
test:
	@tools/install_packages.sh build test servers
	@cmake --preset release $(QUIET) -DONCE_TESTS=ON
	@tools/server.py fetch & cmake --build build -j $(JOBS); built=$$?; wait; exit $$built
	@tools/run_tests.py build -j $(TEST_JOBS)

## The suites under ASan+UBSan (with clang: the second compiler) and under TSan, and the fuzzers.
sanitize:
	@tools/install_packages.sh build test sanitize
	@cmake --preset asan $(QUIET)
	@cmake --build build/asan -j $(JOBS) --target $(SANITIZED_SUITES) suite_fuzz
	@ONCE_SEEDS=$${ONCE_SEEDS:-400} tools/run_tests.py build/asan -j $(JOBS) -L '$(SANITIZED_LABELS)'
	@tools/run_fuzzers.sh build/asan $${ONCE_FUZZ_SECONDS:-10}
	@cmake --preset tsan $(QUIET)
	@cmake --build build/tsan -j $(JOBS) --target $(SANITIZED_SUITES)
	@ONCE_SEEDS=$${ONCE_SEEDS:-100} tools/run_tests.py build/tsan -j $(JOBS) -L '$(SANITIZED_LABELS)'

## Once beside its peers in the same run; figures and plots in bench/results/.
bench:
	@tools/install_packages.sh build bench servers
	@$(CONFIGURE) -DONCE_BENCH=ON
	@cmake --build build -j $(JOBS) --target benchmarks
	@bench/run

## All C++ sources, as .clang-format says.
format:
	@tools/install_packages.sh test
	@git ls-files --cached --others --exclude-standard '*.h' '*.cc' | xargs clang-format-14 -i

## Headers, libraries, binary, CMake and pkg-config files into PREFIX.
install: build
	cmake --install build --prefix $(PREFIX)

## Debian packages of the binary, the shared library and the development files in build/packages.
package: build
	@tools/install_packages.sh package
	cpack --config build/CPackConfig.cmake -B build/packages

clean:
	rm -rf build

help:
	@awk '/^## /{text=substr($$0,4)} /^[a-z]+:/{if(text!="")printf "make %-10s%s\n",$$1,text;text=""}' Makefile
