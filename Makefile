# One command for each thing; `make help` lists them.

SHELL := /bin/bash
PREFIX ?= $(HOME)/.local

.PHONY: help setup setup-all setup-bench setup-demo setup-pictures build build-demo check test test-all demo pictures docs dist install bench bench-agents bench-methods bench-curation bench-map bench-hostile clean
.DEFAULT_GOAL := help

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## install the system packages that build, test and docs need
	@scripts/setup test demo

setup-all: ## install what `make test-all` needs besides: clients that others wrote, and Emacs 30.1
	@scripts/setup test all demo bench
	@scripts/mcp-clients
	@((EUID != 0)) || scripts/emacs30 root

setup-bench:
	@scripts/setup test bench

setup-demo:
	@scripts/setup test demo

setup-pictures:
	@scripts/setup test demo pictures

build: ## compile the server for use, into target/release
	cargo build --release --locked

check: ## check the formatting, and lint and test the server
	@scripts/test check

test: setup ## check and test the server and the Emacs package; ends with one line of counts
	@scripts/test most

test-all: setup-all ## test everything, also what is slow: before a release
	@scripts/test all

build-demo:
	cargo build --locked

demo: setup-demo build-demo ## show it on its own sources; opens Emacs if there is a terminal
	@scripts/demo

pictures: setup-pictures build ## take the pictures and screens of the documentation again
	@scripts/picture docs/images/tour.svg
	@scripts/pictures-browser docs/images
	@scripts/screens
	@scripts/screens-sessions
	@scripts/screens-repl
	@scripts/screens-day
	@scripts/screens-review
	@scripts/screens-slime
	@scripts/screens-remote
	@scripts/screens-tools

docs: setup build ## make the manuals for Info and browsers, and the reference of methods and keys
	@docs/update-methods "$${CARGO_TARGET_DIR:-target}/release/contexture"
	@emacs -Q --batch -L elisp --load scripts/reference.el --funcall contexture-reference-update
	@$(MAKE) --no-print-directory build/contexture.info build/llm-ert.info build/html/contexture.html

build/contexture.info: docs/contexture.inc
build/%.info: docs/%.texi
	@mkdir -p build
	makeinfo --no-split --output=$@ $<

build/html/contexture.html: $(wildcard docs/*.texi docs/*.inc) docs/manual.css docs/manual.js docs/update-pages
	docs/update-pages build/html

dist: setup ## pack the Emacs package into dist/, for package-install-file
	@scripts/dist

install: build docs ## install server, Emacs package and manual under PREFIX (~/.local)
	@scripts/install '$(DESTDIR)$(PREFIX)'

bench: setup-bench ## measure speed and memory beside their targets, into build/bench.txt
	@scripts/bench

bench-agents: build ## measure what agents wait for: the hook before a prompt, the MCP server, and the ACP proxy
	@scripts/bench-agents "$${CARGO_TARGET_DIR:-target}/release/contexture"

bench-methods: build ## compare each method with another build of the server: EARLIER=program
	@scripts/bench-methods '$(EARLIER)' "$${CARGO_TARGET_DIR:-target}/release/contexture"

bench-curation: ## measure what curation keeps, costs and takes, also of recorded ones: SESSIONS=DIR DIALOGUES=DIR EMBEDDINGS=URL
	@cargo bench --locked --quiet --bench curation

bench-map: ## measure the map on checkouts, whose earlier commits it checks out: MAP_REPOS='DIR DIR'; search too: MAP_QUESTIONS=FILE; aider's too: AIDER_PYTHON=PROGRAM
	@scripts/bench-map

bench-hostile: ## measure what others notice of hostile clients, and the memory that those take
	@cargo bench --locked --quiet --bench hostile

clean: ## remove everything that was built
	cargo clean
	rm -rf build dist
	rm -f elisp/*.elc elisp/*-autoloads.el tests/elisp/*.elc
