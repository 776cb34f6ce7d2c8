# goals.mk: what can be typed. Texts behind ## are those of make help.
.PHONY: all run check check-programs programs-of-tests check-all check-all-programs bench bench-emulator measure-clock figures format clean help emulator emulator-portable install uninstall tests pitfalls
.PHONY: exercise exercises hint watch rooms take book check-page check-readmes lint-page
SUPPORT := $(TENSOR_MAP_COMMAND) $(FIND_DEVICE) $(EMULATOR)

all: $(call long_first,$(PROGRAMS)) $(SUPPORT) ## build everything (of this chapter)

run: $(call long_first,$(RUN_PROGRAMS)) $(SUPPORT) ## build and run the main program of every chapter, in order
	@$(ROOT)/common/make/run-chapters $(RUN_PROGRAMS)

check: check-programs ## build and test the lessons; the last line is "N passed, N failed, N skipped"
	@$(ROOT)/common/make/check-chapters $(call longest_tests_first,$(or $(NAMED_TEST_FILES),$(CHECK_FILES)))

# Each pitfall in four times as many orders, too.
check-all: export PITFALL_ORDERS := 20
check-all: check-all-programs ## run every test: also all of the emulator's, and the slowest lesson
	@$(ROOT)/common/make/check-chapters $(call longest_tests_first,$(or $(NAMED_TEST_FILES),$(ALL_TEST_FILES)))

# Without TESTS=, all that is checked.
CHECKED := $(if $(filter check check-programs check-all check-all-programs programs-of-tests,$(GOALS)),$(if $(TESTS),$(sort $(call needs,$(NAMED_TEST_FILES))),\
  $(QUICK_LESSONS) $(JUDGES) $(sort $(call needs,$(CHECK_FILES)))))
check-programs: $(call long_first,$(CHECKED)) $(SUPPORT)
check-all-programs: check-programs $(if $(TESTS),,$(filter-out $(BENCH_PROGRAMS) $(PITFALL_PROGRAMS),$(EVERYTHING)) \
  $(if $(filter check-all check-all-programs,$(GOALS)),$(call named_pitfalls,$(ALL_TEST_FILES) $(QUOTING))))
# What a test that is started by hand needs (emulator/tests/helpers.bash).
programs-of-tests:
	@printf '%s\n' $(CHECKED) $(SUPPORT)

tests: $(TEST_PROGRAMS) $(TEST_C_PROGRAMS) $(TAKEN_EXAMPLES) $(TAKEN_PROGRAMS) $(SKELETONS) $(SOLUTIONS) $(JUDGES)

# Without a GPU nothing is built: the benchmarks take minutes to compile.
bench: $(FIND_DEVICE) ## measure on the GPU: tables and CSV files under build/ (without a GPU it says so)
	@if [ "$(DEVICE)" != emulator ] && $(FIND_DEVICE) >/dev/null; then $(MAKE) --no-print-directory all; fi
	@$(ROOT)/common/make/bench-chapters $(CHAPTERS)

measure-clock: $(LESSON_PROGRAMS) $(BUILD)/emulator/tests/clock_ladder ## measure the parameters of the emulator's clock (needs an H200 and ncu)
	@mkdir -p $(BUILD)/emulator_clock
	$(Q)for program in measure measure_load measure_share; do \
	  $(NVCC) $(NVCC_FLAGS) $(ARCHITECTURES) -I$(ROOT)/common -o $(BUILD)/emulator_clock/$$program \
	    $(ROOT)/emulator/clock/$$program.cu $(BUILD)/common/libcommon.a || exit 2; done
	@$(ROOT)/emulator/clock/measure.sh

bench-emulator: $(addprefix $(BUILD)/emulator/tests/,bench bench_engines bench_checks) $(EMULATOR) ## measure how fast the emulator itself is
	@$(BUILD)/emulator/tests/bench
	@for threads in 1 $$(nproc); do echo "$$threads host threads:"; EMULATOR_THREADS=$$threads \
	  $(ROOT)/emulator/emulate $(BUILD)/emulator/tests/bench_engines | sed '1d;$$d'; done
	@echo "What the checks cost:"; $(ROOT)/emulator/tests/bench_checks.sh $(BUILD)/emulator/tests/bench_checks

figures: $(PROGRAMS) $(EMULATOR) ## draw the figures and write the measured tables into the READMEs
	@python3 $(ROOT)/common/book/figures.py $(addprefix $(ROOT)/,$(CHAPTERS))
	@python3 -B $(ROOT)/common/book/draw.py $(addprefix $(ROOT)/,$(CHAPTERS))

pitfalls: $(PITFALL_PROGRAMS) $(SUPPORT) ## run every mistake of the chapters and show what is reported
	@$(ROOT)/common/make/show-pitfalls $(CHAPTERS)

exercise: $(SUPPORT) ## start the next exercise in build/exercises/, or judge the one that you have (EXERCISE=number: that one)
	@$(ROOT)/common/exercises/exercise start $(CHAPTERS)

exercises: ## list all exercises, by difficulty, and which of them you have solved
	@$(ROOT)/common/exercises/exercise list $(CHAPTERS)

watch: ## build and run again whenever a file of the chapter is saved (make watch-02, or PROGRAM=name)
	@$(ROOT)/common/make/watch-chapter "$(PROGRAM)" $(CHAPTERS)

hint: ## one more hint for the exercise
	@$(ROOT)/common/exercises/exercise hint $(CHAPTERS)

take: ## write what the chapters offer as self-contained headers: make take-02 TO=dir
	@$(ROOT)/common/exercises/take $(if $(WHOLE),,$(firstword $(subst _, ,$(CHAPTERS))))

book: $(QUICK_LESSONS) $(JOINED_PROGRAMS) $(TURNED_PROGRAMS) $(SUPPORT) ## write the chapters and a page to step through every program to build/book/index.html
	@python3 -B $(ROOT)/common/book/book.py $(BUILD)/book

emulator: $(EMULATOR) ## build the emulator alone

emulator-portable: $(PORTABLE_EMULATOR) ## build it for every processor since 2009, too (in build/emulator/portable; also for Valgrind)

rooms: $(EMULATOR) ## draw which folder of the emulator calls which, into its README
	@$(ROOT)/emulator/rooms draw

PREFIX ?= /usr/local
ifneq ($(and $(filter install,$(GOALS)),$(filter-out $(wildcard $(EMULATOR) $(PORTABLE_EMULATOR)),$(EMULATOR) $(PORTABLE_EMULATOR))),)
$(info make install compiles the emulator first, for this processor and for all: a few minutes on two cores)
endif
install: $(EMULATOR) $(PORTABLE_EMULATOR) ## put emulate, its libraries, the headers of take and a man page into PREFIX
	@$(ROOT)/emulator/install put $(call quoted,$(PREFIX))

uninstall: ## remove what make install has put into PREFIX
	@$(ROOT)/emulator/install remove $(call quoted,$(PREFIX))

check-page: all tests ## show ten recordings in a headless browser, at 200 moments each
	@bats=$$($(ROOT)/common/make/find-bats $(BUILD)) && $$bats --print-output-on-failure $(ROOT)/emulator/tests/long/page.bats

check-readmes: all tests ## run every command of every README, and compare the outputs that are shown there
	@python3 -B $(ROOT)/tests/readme_commands.py --all

lint-page: ## look over the script of the emulator's page with eslint
	@$(ROOT)/emulator/page/lint

format: ## lay out all C and CUDA sources with clang-format
	@command -v clang-format >/dev/null || { echo "clang-format is not installed; on Debian: apt-get install clang-format" >&2; exit 2; }
	$(Q)cd $(ROOT) && git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

clean: ## remove what was built (not a fetched toolkit)
	$(Q)rm -rf $(if $(WHOLE),\
	  $(filter-out $(BUILD)/cuda $(BUILD)/bats,$(wildcard $(BUILD)/*)),$(addprefix $(BUILD)/,$(CHAPTERS)))

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' $(ROOT)/common/make/goals.mk | \
	  while IFS=$$'\t' read -r goal text; do printf '  make %-16s %s\n' "$$goal" "$$text"; done
	@printf '  make %-16s %s\n' 'run-02' 'run, check, bench, pitfalls, exercise(s), hint, watch, take and figures also take a chapter'
	@sed -n 's/^#   /  /p' $(ROOT)/common/make/lesson.mk

# run-02, check-02 and so on: the goal of that chapter alone (start.mk). Several of them are a make each.
ifneq ($(CHAPTER),)
$(ASKED): $(GOALS)
else ifneq ($(NUMBERED),)
$(NUMBERED):
	@$(MAKE) --no-print-directory $@
endif
