# The front door. Everything real happens in cmake, ctest and tools/.
#   make        everything: build/hone, build/onnx_conformance, the tests and tools
#   make hone   build/hone alone, in about half the time
#   make demo   the main job on a real network
#   make install   command, library, headers, man pages and completion under PREFIX (/usr/local); DESTDIR= for packagers
#   make uninstall   removes what the last make install wrote, where it wrote it
#   make deb    Debian packages of command, library and headers -> build/packages
#   make tsan   the tests that use threads, under ThreadSanitizer
#   make soak   random operations on many threads for an hour under ThreadSanitizer, then pictures, broken ones among them; SOAK=600 for less
#   make bench-peers   speed, memory and load time against ONNX Runtime -> docs/log/perf.md; MODELS=resnet50 ROUNDS=3 PARTS=networks for a quick look
#   make bench-runtime  streams, several plans at once, pipelines, submitted runs, new sizes on the processor; ROUNDS=3 PARTS=pairs for a part
#   make bench-scale  loading and planning networks of up to 10,000 nodes, and what the profiler costs a run; ROUNDS=3
#   make bench-import  speed and memory of importing traces of more than 500 MB
#   make portable    build-portable/portable, a folder that runs on another x86-64 Linux machine
#   make bench-advice  is the advice true? predicted against measured gains -> docs/log/advice-truth.md (SECONDS=500: a part, the next one goes on; OUT=: another file)
#   make test-emulated   what make test leaves out of the emulated GPU: all variants, sizes and device texts
#   make test-gpu, make bench-gpu   everything on a machine with a GPU, under 10 minutes each; RECORD=folder: test-gpu goes on where a call before ended
#   make bench-planted  20 bottlenecks planted at random places of random networks: which does hone name first?
#   make bench-gate   how often the gate is wrong, by recorded noise: false alarms and +5 % caught
#   make test-faults   every call to the system fails once by every way to it, about 10 minutes (make test: once a place)
#   make test-extending  units of every kind are added to a copy of the tree, one file and one line each, and work
#   make test-history-kill   a thousand writers killed at random moments lose no run that was acknowledged
#   make scoreboard   ONNX's own backend tests on hone, counted as its public scoreboard does; HONE_PYTHON= names a Python with onnx, ARGS=--list says which fail
#   make test   lint, all tests (also under ASan + UBSan), conformance, a short fuzz
BUILD := build

# Sample models, profiles and scripts for comparisons, which are no part of the repository. What needs them says so (SKIP) where they
# are missing; `make SHARED=/folder` names another place, `make SHARED=` none.
SHARED ?= $(or $(HONE_SHARED),../shared)
export HONE_SHARED := $(or $(SHARED),/nonexistent)

.PHONY: soak install uninstall help deb scoreboard test-extending test-faults bench-advice bench-planted bench-gate test-history-kill portable test-emulated test-gpu bench-gpu all hone demo test tsan bench bench-peers bench-runtime bench-scale fuzz fmt lint deps deps-test docs clean

all: deps
	@cmake --preset release >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	cmake --build $(BUILD)

deps:
	@sh tools/install_packages.sh build
deps-test:
	@sh tools/install_packages.sh build test

# Whoever has a first look, or a CI job, should not wait for the tests to be compiled.
hone: deps
	@cmake --preset release >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	cmake --build $(BUILD) --target hone_cli

PREFIX ?= /usr/local
install: all
	DESTDIR="$(DESTDIR)" cmake --install "$(BUILD)" --prefix "$(PREFIX)"
	@{ printf '%s\n' "$(DESTDIR)" "$(PREFIX)"; cat "$(BUILD)/install_manifest.txt"; } >"$(BUILD)/installed.txt" # which tests and packages do not write

uninstall:
	@DESTDIR="$(DESTDIR)" sh tools/uninstall.sh "$(BUILD)"

help:
	@sed -n 's/^#   //p' Makefile

deb: all
	@sh tools/deb.sh $(BUILD)

demo: hone
	@mkdir -p $(BUILD)/demo
	$(BUILD)/hone zoo resnet50 --batch 1 -o $(BUILD)/demo/resnet50.onnx
	$(BUILD)/hone $(BUILD)/demo/resnet50.onnx --output-dir $(BUILD)/demo/hone-report

test: deps-test
	@sh tools/test.sh

tsan: deps-test
	@sh tools/tsan.sh

soak: deps-test all
	@sh tools/soak.sh $(or $(SOAK),3600)

fuzz: deps-test
	@sh tools/fuzz.sh 600

lint: deps-test
	@sh tools/lint.sh

fmt:
	git ls-files '*.c' '*.h' | xargs clang-format -i
	python3 tools/wrap_pages.py $$(git ls-files '*.md' ':!*zh-CN.md')

bench: all
	$(BUILD)/check_kernels --bench

# Predicted against measured gains over networks and settings, about 8 minutes.
bench-advice: all
	@python3 bench/advice/truth.py $(BUILD)/hone --models $(or $(MODELS),$(HONE_SHARED)/cases/models) --rows $(BUILD)/advice.jsonl \
	  $(if $(SECONDS),--seconds $(SECONDS)) --out $(or $(OUT),docs/log/advice-truth.md)

bench-kernels: all
	@{ sed '/^## Figures/q' docs/log/perf-kernels.md; echo; $(BUILD)/check_kernels --bench --markdown | sed -n '/^Measured on/,$$p'; } >$(BUILD)/perf-kernels.md
	@cp $(BUILD)/perf-kernels.md docs/log/perf-kernels.md

# Each of these narrows a look; only a whole run writes docs/log/perf.md.
PEERS := $(strip $(foreach v,MODELS ROUNDS BATCHES THREADS PRECISIONS PARTS OPERATORS,$(if $($(v)),--$(shell echo $(v) | tr A-Z a-z) "$($(v))")))
bench-peers: all
	@sh bench/peers/run.sh $(BUILD)/hone $(or $(PEERS),--out docs/log/perf.md) --others $(or $(OTHERS),$(HONE_SHARED)/cases/models)

# Traces of more than 500 MB; MB=2000 for larger ones.
bench-import: all
	@sh bench/import/run.sh $(BUILD)

# Streams, plans in threads, pipelines and what they cost; about 4 minutes.
bench-runtime: all
	@python3 bench/runtime/runtime.py $(BUILD) --models $(or $(MODELS),$(HONE_SHARED)/cases/models) \
	  $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(PARTS),--parts "$(PARTS)")

# Networks of up to 10,000 nodes, and the profiler's cost; about 3 minutes.
bench-scale: all
	@python3 bench/scale/scale.py $(BUILD) $(if $(ROUNDS),--rounds $(ROUNDS))

portable: deps-test
	@cmake --preset portable >build-portable.log 2>&1 || { cat build-portable.log; exit 1; }
	@rm -f build-portable.log
	cmake --build build-portable --target portable

test-emulated: deps-test all
	@sh tools/test_emulated.sh $(BUILD)

# In a checkout, or in a portable folder by sh test_gpu.sh.
test-gpu: all
	@MODELS=$(or $(MODELS),$(HONE_SHARED)/cases/models) sh tools/test_gpu.sh $(BUILD)

bench-gpu: all
	@ANCHORS=$(or $(ANCHORS),$(HONE_SHARED)/anchors) sh tools/bench_gpu.sh $(BUILD)

bench-planted: all
	$(BUILD)/advice_planted $(if $(SEED),--seed $(SEED))

bench-gate: all
	@$(BUILD)/gate_replay -n 2000 bench/gate/noise.txt bench/gate/noise-neighbour.txt

test-faults: deps-test all
	@sh tests/apart.sh $(BUILD)/test_faults --stacks

test-extending: deps
	sh tests/extending/extend.sh $(patsubst tests/extending/%/line,%,$(wildcard tests/extending/*/line))

scoreboard: all
	@sh tests/python/scoreboard.sh $(abspath $(BUILD)) $(ARGS) || [ $$? = 77 ]

test-history-kill: all
	$(BUILD)/history_kill 1000

docs: all
	$(BUILD)/hone help --format markdown >docs/reference/options.md
	$(BUILD)/hone_operators >docs/reference/operators.md
	sh tools/thresholds_md.sh >docs/reference/thresholds.md
	$(BUILD)/hone_facts_docs page >docs/reference/facts-members.md
	$(BUILD)/hone_facts_docs schema src/insight/report/derived.schema.json >docs/reference/schema/facts-v1.schema.json

clean:
	rm -rf build build-*
