# Short names for the things one does with this tree; `make help` lists them.

BINARY := build/release/deepinfer
JOBS ?= $(shell nproc)
# Seconds for each fuzz target of `make fuzz`.
FUZZ_SECONDS ?= 60
DEMO_PROMPT ?= Omar has 80 plums and eats 22 of them. How many plums are left?

.PHONY: help demo build test bench format lint tidy fuzz clean

help:
	@echo 'make demo     build, then generate text with the checkpoint in models/nano'
	@echo 'make build    build only ($(BINARY))'
	@echo 'make test     build and run every test, lints included'
	@echo 'make bench    build and run the benchmarks'
	@echo 'make format   format the C++ sources in place'
	@echo 'make lint     run the lints alone'
	@echo 'make tidy     run clang-tidy over src/ (minutes)'
	@echo 'make fuzz     run each fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)) seconds'
	@echo 'make clean    remove build/'

build:
	./build.sh

demo: build
	@echo
	$(BINARY) generate --model models/nano "Who are you?"
	@echo
	$(BINARY) generate --model models/nano --thinking --stats "$(DEMO_PROMPT)"
	@echo
	@echo 'That was the shipped checkpoint. What to try next:'
	@echo '  $(BINARY) chat                 talk to it (/help lists the commands)'
	@echo '  $(BINARY) generate --raw --max-tokens 60 "It was a dark night, and"'
	@echo '  $(BINARY) eval                 measure it on models/nano/eval'
	@echo '  $(BINARY) inspect models/nano  what is in the checkpoint'
	@echo '  make test                               prove that every number is right'

test:
	./build.sh --tests
	ctest --test-dir build/release --output-on-failure -j$(JOBS)

bench:
	./build.sh --bench
	tools/run_benchmarks.sh build/release

format:
	git ls-files -z -- '*.h' '*.cc' | xargs -0 clang-format-19 -i

lint:
	./build.sh --tests --target option_docs
	ctest --test-dir build/release --output-on-failure -L lint

tidy:
	tools/run_clang_tidy.sh

fuzz:
	./build.sh --preset fuzz --target fuzzers
	tools/run_fuzzers.sh build/fuzz $(FUZZ_SECONDS)

clean:
	rm -rf build
