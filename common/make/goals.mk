# goals.mk: what can be typed. Texts behind ## are those of make help, in its three groups.
.PHONY: all run check check-programs programs-of-tests check-all check-all-programs bench bench-emulator measure-clock figures format clean help emulator emulator-portable install uninstall tests pitfalls
.PHONY: exercise exercises hint watch rooms take book check-page check-readmes lint-page
SUPPORT := $(TENSOR_MAP_COMMAND) $(FIND_DEVICE) $(EMULATOR)

all: $(call long_first,$(PROGRAMS)) $(SUPPORT) ## work: build everything (of this chapter)

run: $(call long_first,$(RUN_PROGRAMS)) $(SUPPORT) ## learn: build and run the main program of every chapter (PROGRAM=name: that program)
	@$(ROOT)/common/make/run-chapters $(RUN_PROGRAMS)

check: check-programs ## learn: build and test the lessons; the last line is "N passed, N failed, N skipped"
	@$(ROOT)/common/make/check-chapters $(call longest_tests_first,$(or $(NAMED_TEST_FILES),$(CHECK_FILES)))

# Each pitfall in ten times as many orders, too.
check-all: export PITFALL_ORDERS := 20
check-all: check-all-programs ## work: run every test: also all of the emulator's, and the slowest lesson
	@$(ROOT)/common/make/check-chapters $(call longest_tests_first,$(or $(NAMED_TEST_FILES),$(ALL_TEST_FILES)))

# Without TESTS=, all that is checked.
CHECKED := $(if $(filter check check-programs check-all check-all-programs programs-of-tests,$(GOALS)),$(if $(TESTS),$(sort $(call needs,$(NAMED_TEST_FILES))),\
  $(QUICK_LESSONS) $(JUDGES) $(sort $(call needs,$(CHECK_FILES)))))
check-programs: $(call long_first,$(CHECKED)) $(SUPPORT) ## work: build what check runs, and run nothing: to start one test by hand
check-all-programs: check-programs $(if $(TESTS),,$(filter-out $(BENCH_PROGRAMS) $(PITFALL_PROGRAMS),$(EVERYTHING)) \
  $(if $(filter check-all check-all-programs,$(GOALS)),$(call named_pitfalls,$(ALL_TEST_FILES) $(QUOTING))))
# What a test that is started by hand needs (emulator/tests/helpers.bash).
programs-of-tests:
	@printf '%s\n' $(CHECKED) $(SUPPORT)

tests: $(TEST_PROGRAMS) $(TEST_C_PROGRAMS) $(TAKEN_EXAMPLES) $(TAKEN_PROGRAMS) $(SKELETONS) $(SOLUTIONS) $(JUDGES)

# Without a GPU nothing is built: the benchmarks take minutes to compile.
bench: $(FIND_DEVICE) ## work: measure on the GPU: tables and CSV files under build/ (without a GPU it says so)
	@if [ "$(DEVICE)" != emulator ] && $(FIND_DEVICE) >/dev/null; then $(MAKE) --no-print-directory all; fi
	@$(ROOT)/common/make/bench-chapters $(CHAPTERS)

measure-clock: $(LESSON_PROGRAMS) $(BUILD)/emulator/tests/clock_ladder ## work: measure the parameters of the emulator's clock (needs an H200 and ncu)
	@mkdir -p $(BUILD)/emulator_clock
	$(Q)for program in measure measure_load measure_share; do \
	  $(NVCC) $(NVCC_FLAGS) $(ARCHITECTURES) -I$(ROOT)/common -o $(BUILD)/emulator_clock/$$program \
	    $(ROOT)/emulator/clock/$$program.cu $(BUILD)/common/libcommon.a || exit 2; done
	@$(ROOT)/emulator/clock/measure.sh

bench-emulator: $(addprefix $(BUILD)/emulator/tests/,bench bench_engines bench_checks) $(EMULATOR) ## work: measure how fast the emulator itself is
	@$(BUILD)/emulator/tests/bench
	@for threads in 1 $$(nproc); do echo "$$threads host threads:"; EMULATOR_THREADS=$$threads \
	  $(ROOT)/emulator/emulate $(BUILD)/emulator/tests/bench_engines | sed '1d;$$d'; done
	@echo "What the checks cost:"; $(ROOT)/emulator/tests/bench_checks.sh $(BUILD)/emulator/tests/bench_checks

figures: $(PROGRAMS) $(EMULATOR) ## work: draw the figures and write the measured tables into the READMEs
	@python3 $(ROOT)/common/book/figures.py $(addprefix $(ROOT)/,$(CHAPTERS))
	@python3 -B $(ROOT)/common/book/draw.py $(addprefix $(ROOT)/,$(CHAPTERS))

pitfalls: $(PITFALL_PROGRAMS) $(SUPPORT) ## learn: run the programs with one mistake each, and show the report of each
	@$(ROOT)/common/make/show-pitfalls $(CHAPTERS)

exercise: $(SUPPORT) ## learn: start the next exercise, a file in build/exercises/, or judge your answer in it
	@$(ROOT)/common/exercises/exercise start $(CHAPTERS)

exercises: ## learn: list all exercises, by difficulty, and which of them you have solved
	@$(ROOT)/common/exercises/exercise list $(CHAPTERS)

watch: ## learn: build and run again whenever you save a file of the chapter
	@$(ROOT)/common/make/watch-chapter "$(PROGRAM)" $(CHAPTERS)

hint: ## learn: a hint for the exercise, and one more each time
	@$(ROOT)/common/exercises/exercise hint $(CHAPTERS)

take: ## learn: write the headers of all chapters, for your own code: make take-02 TO=dir
	@$(ROOT)/common/exercises/take $(if $(WHOLE),,$(firstword $(subst _, ,$(CHAPTERS))))

book: $(QUICK_LESSONS) $(JOINED_PROGRAMS) $(TURNED_PROGRAMS) $(SUPPORT) ## learn: write the book, with a page to step through each program: build/book/index.html
	@python3 -B $(ROOT)/common/book/book.py $(BUILD)/book

emulator: $(EMULATOR) ## own: build the emulator; emulator/emulate kernel.cu then runs a kernel

emulator-portable: $(PORTABLE_EMULATOR) ## own: build it for every x86-64 processor since 2009, and for Valgrind, in build/emulator/portable

rooms: $(EMULATOR) ## work: draw which folder of the emulator calls which, into its README
	@$(ROOT)/emulator/rooms draw

PREFIX ?= /usr/local
ifneq ($(and $(filter install,$(GOALS)),$(filter-out $(wildcard $(EMULATOR) $(PORTABLE_EMULATOR)),$(EMULATOR) $(PORTABLE_EMULATOR))),)
$(info make install compiles the emulator first, for this processor and for all: a few minutes on two cores)
endif
install: $(EMULATOR) $(PORTABLE_EMULATOR) ## own: put emulate, its libraries, the headers of take and a man page into PREFIX
	@$(ROOT)/emulator/install put $(call quoted,$(PREFIX))

uninstall: ## own: remove what make install has put into PREFIX
	@$(ROOT)/emulator/install remove $(call quoted,$(PREFIX))

check-page: all tests ## work: show ten recordings in a headless browser, at 200 moments each
	@bats=$$($(ROOT)/common/make/find-bats $(BUILD)) && $$bats --print-output-on-failure $(ROOT)/emulator/tests/long/page.bats

check-readmes: all tests ## work: run every command of every README, and compare the outputs that are shown there
	@python3 -B $(ROOT)/tests/readme_commands.py --all

lint-page: ## work: look over the script of the emulator's page with eslint
	@$(ROOT)/emulator/page/lint

format: ## work: lay out all C and CUDA sources with clang-format
	@command -v clang-format >/dev/null || { echo "clang-format is not installed; on Debian: apt-get install clang-format" >&2; exit 2; }
	$(Q)cd $(ROOT) && git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

clean: ## work: remove what was built (not a fetched toolkit)
	$(Q)rm -rf $(if $(WHOLE),\
	  $(filter-out $(BUILD)/cuda $(BUILD)/bats,$(wildcard $(BUILD)/*)),$(addprefix $(BUILD)/,$(CHAPTERS)))

help: ## work: this list
	@for group in 'learn:To learn; begin with make run-02 PROGRAM=first_load' 'own:For kernels of your own' 'work:To work on this repository'; do \
	  printf '%s\n' "$${group#*:}"; sed -n "s/^\([a-z-]*\):.* ## $${group%%:*}: /\1\t/p" $(ROOT)/common/make/goals.mk | \
	  while IFS=$$'\t' read -r goal text; do printf '  make %-18s %s\n' "$$goal" "$$text"; done; done
	@printf '%s\n' 'run-02, check-02, pitfalls-02, exercise-02, exercises-02, hint-02, watch-02, take-02, bench-02, figures-02: for chapter 02' Settings
	@sed -n 's/^#   /  /p' $(ROOT)/common/make/lesson.mk

# run-02, check-02 and so on: the goal of that chapter alone (start.mk). Several of them are a make each.
ifneq ($(CHAPTER),)
$(ASKED): $(GOALS)
else ifneq ($(NUMBERED),)
$(NUMBERED):
	@$(MAKE) --no-print-directory $@
endif
