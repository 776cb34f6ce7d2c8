# lesson.mk: the one set of rules. Included at the root it serves all chapters, included by a
# chapter's Makefile that chapter alone; the goals are the same.
#
#   DEVICE=gpu|emulator   where programs run; default: a Hopper GPU if there is one
#   CUDA_HOME=...         the CUDA Toolkit; default: PATH, /usr/local/cuda, else it is fetched
#                         ("fetch": it is fetched, whatever is installed)
#   PROGRAM=name          run this program instead of the main ones
#   TESTS=name            check runs only this file of tests/, whichever it is
#   EXERCISE=number       start or judge this exercise instead of the next
#   TO=dir                where the headers of take go; default: build/take
#   SANITIZE="..."        flags such as -fsanitize=address, for all host code
#   WERROR=1              warnings are errors
#   V=1                   show the commands

ifneq ($(filter 3.% 4.0 4.1,$(MAKE_VERSION)),)
$(error this is GNU Make $(MAKE_VERSION), but 4.2 or newer is needed)
endif
# Neither make nor the linker can quote every character of a path.
quoted = '$(subst ','\'',$(1))'
unusable_in = $(shell $(1) | LC_ALL=C tr -d 'A-Za-z0-9/._+@~^\200-\377\n-' | fold -w1 | sort -u | \
  sed 's/.*/"&"/')
UNUSABLE := $(call unusable_in,pwd -P)
ifneq ($(UNUSABLE),)
$(error this folder is '$(CURDIR)', and make and the linker cannot work with $(UNUSABLE) in a path: \
move it to where all folders have names of letters, digits and . _ + - @)
endif

ROOT := $(patsubst %/common/lesson.mk,%,$(abspath $(lastword $(MAKEFILE_LIST))))
BUILD := $(ROOT)/build
UNUSABLE := $(call unusable_in,printf %s $(call quoted,$(BUILD)))
ifneq ($(UNUSABLE)$(if $(filter /%,$(firstword $(BUILD))),,no path),)
$(error BUILD is '$(BUILD)', but must be a path that begins with / and has only letters, digits \
and . _ + - @ in its names)
endif
CHAPTERS := $(strip $(if $(filter $(ROOT),$(CURDIR)),\
  $(notdir $(wildcard $(ROOT)/[0-9][0-9]_*)),$(notdir $(CURDIR))))
Q := $(if $(filter 1,$(V)),,@)
SHELL := /bin/bash
# Every tool that a rule starts has an empty input: at a terminal, one that reads would wait for ever.
.SHELLFLAGS := -c 'exec </dev/null; eval "$$0"'
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
# With -n, -q or -t nothing is built.
ONLY_ASKED := $(strip $(foreach f,n q t,$(findstring $(f),$(firstword -$(MAKEFLAGS)))))
MAKEFLAGS += --no-builtin-rules
# All cores, unless the caller has said how many; a make within a make shares the outer one's.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# A goal becomes a word of commands below.
UNUSABLE := $(call unusable_in,printf '%s\n' $(foreach goal,$(MAKECMDGOALS),$(call quoted,$(goal))))
ifneq ($(UNUSABLE),)
$(error the goals are '$(MAKECMDGOALS)', but there is no goal with $(UNUSABLE) in its name: make help lists them)
endif

ifneq ($(filter-out 0 1,$(V)),)
$(error V is '$(V)', but must be 0 or 1 (1 shows the commands))
endif
ifneq ($(filter-out 0 1,$(WERROR)),)
$(error WERROR is '$(WERROR)', but must be 0 or 1 (1 makes warnings errors))
endif
ifneq ($(filter-out gpu emulator,$(DEVICE)),)
$(error DEVICE is '$(DEVICE)', but must be gpu or emulator (or not set: a Hopper GPU if there is one))
endif
export DEVICE TO EXERCISE
# What is written here is held to the strict findings too: they also make the exit code 3.
export EMULATOR_CHECK ?= strict

# ---- The tools and the toolkit: only goals that compile look for them ----
GOALS := $(or $(MAKECMDGOALS),all)
RUNNING := $(filter run run-% check% bench% pitfalls% exercise% hint% watch% measure-clock figures book take%,$(GOALS))
ifneq ($(and $(filter-out $(ROOT)/build,$(BUILD)),$(RUNNING)),)
$(error BUILD is '$(BUILD)', but "make $(firstword $(RUNNING))" needs its programs in $(ROOT)/build: leave BUILD out)
endif
COMPILING := $(filter-out help clean format lint-page hint hint-% exercises exercises-% take take-%,$(GOALS))
ifneq ($(COMPILING),)
ifeq ($(ONLY_ASKED),)
ifneq ($(shell mkdir -p $(BUILD)/steps 2>/dev/null && { echo writable >$(BUILD)/steps/0; } 2>/dev/null || echo no),)
$(error programs are built in $(BUILD), but that folder cannot be written: make it writable for \
$(shell id -un), or copy everything to a disk that is neither read-only nor full)
endif
endif
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
CUDA := $(or $(CUDA_FOUND),$(shell CUDA_HOME=$(call quoted,$(CUDA_HOME)) CC=$(call quoted,$(CC)) \
  $(ROOT)/common/find-toolkit $(BUILD) $(COMPILING)))
ifeq ($(CUDA),)
$(error something that the build needs is missing; the message above says what to type)
endif
export CUDA_LIBRARIES := $(firstword $(wildcard $(CUDA)/lib64 $(CUDA)/lib))
endif
export NVCC := $(CUDA)/bin/nvcc
comma := ,

# SASS for the H200, and the PTX that the emulator reads, not compressed so that it needs no zstd.
# (-arch=sm_90a would also run a plain sm_90 pass, which refuses wgmma.)
EMULATED := -gencode arch=compute_90a,code=compute_90a
MACHINE_CODE := -gencode arch=compute_90a,code=sm_90a
SASS := $(MACHINE_CODE)
ARCHITECTURES := $(SASS) $(EMULATED)
# C++14: from C++17 on the toolkit's headers are twice as long to compile, and nothing here needs it.
STANDARD := c++14
# A newer compiler's new warnings must not stop a reader: only WERROR=1 makes errors of them.
WARNINGS := -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror)
HOST_LEVEL := -O3
NVCC_FLAGS = -std=$(STANDARD) $(HOST_LEVEL) -lineinfo --no-compress -cudart shared \
  $(if $(filter 1,$(WERROR)),-Werror all-warnings) \
  $(addprefix -Xcompiler ,$(WARNINGS) -Wno-missing-field-initializers \
  $(subst $(comma),\\$(comma),$(SANITIZE)))
CC_FLAGS := -std=c11 -D_GNU_SOURCE -O2 -g $(WARNINGS) -Wmissing-prototypes -fPIC \
  -isystem $(CUDA)/include $(SANITIZE)
# fp-contract: a contracted multiply-add would round once where the emulated instruction rounds twice.
# psabi: gcc notes that inline functions with vectors are passed otherwise than in gcc 4.5.
# -g1: lines without variables, in three quarters of the time.
EMULATOR_FLAGS := $(CC_FLAGS) -g1 -Wno-psabi -fno-math-errno -ffp-contract=off \
  -fno-strict-aliasing -fno-semantic-interposition -pthread -I$(ROOT)/common/emulator -I$(ROOT)/common

# The emulator is built twice: for every processor since 2009 (x86-64-v2), and for the best level of
# instructions that this one has. The loader takes the better one where the processor has what it
# needs, so that a build folder also works on another machine, and under Valgrind. Only the better one
# is optimised as far as the compiler can: the other is compiled in less than half the time.
CPU := $(if $(COMPILING),$(shell sed -n '/^flags/{p;q}' /proc/cpuinfo))
all_of = $(if $(filter-out $(CPU),$(1)),,$(2))
FAST_LEVEL := $(or $(call all_of,avx512f avx512bw avx512cd avx512dq avx512vl,x86-64-v4),\
  $(call all_of,avx2 bmi1 bmi2 f16c fma abm movbe,x86-64-v3))
# By their parts: the names of the levels are newer than the compilers of some machines.
FLAGS_x86-64-v2 := -mssse3 -msse4.1 -msse4.2 -mpopcnt -mcx16 -msahf
# Tuned for no processor in particular, gcc copies a warp's 128 bytes by "rep movs", whose start alone takes longer.
FLAGS_x86-64-v3 := $(FLAGS_x86-64-v2) -mavx -mavx2 -mbmi -mbmi2 -mf16c -mfma -mlzcnt -mmovbe -mtune=skylake
FLAGS_x86-64-v4 := $(FLAGS_x86-64-v3) -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl -mtune=skylake-avx512
LEVEL_OF_BASELINE := $(if $(FAST_LEVEL),-O1,-O3)

# ---- The files of tests ----
# check runs what belongs to the chapters, and a short test of the emulator.
# check-all also runs what takes longer, or is about the project and not about a lesson: the rest of the emulator's
# tests, the book, drawings and figures, 07_pipelined_gemm/layouts with its kernels for every layout, the benchmarks'
# usage, this file, and the headers of make take and the solutions of the exercises one by one.
# At the root all tests; in a chapter its own.
TESTED := $(if $(filter $(ROOT),$(CURDIR)),*,$(CHAPTERS))
ALL_TEST_FILES := $(wildcard $(ROOT)/tests/$(TESTED).bats)
SHORT_TESTS_OF_EMULATOR := $(addprefix $(ROOT)/tests/emulator_,alu.bats machine.bats)
ONLY_IN_CHECK_ALL := $(filter-out $(SHORT_TESTS_OF_EMULATOR),$(filter \
  $(ROOT)/tests/emulator_%.bats $(patsubst %,$(ROOT)/tests/%.bats,benchmarks book drawings fetching figures layouts makefile \
  solutions take terminal tests translations),$(ALL_TEST_FILES)))
CHECK_FILES := $(filter-out $(ONLY_IN_CHECK_ALL),$(ALL_TEST_FILES))
# TESTS=name... runs other files: emulator_lanes, or pitfalls.
UNKNOWN_TESTS := $(filter-out $(notdir $(ALL_TEST_FILES:.bats=)),$(TESTS))
ifneq ($(and $(filter check check-all,$(GOALS)),$(UNKNOWN_TESTS)),)
$(error TESTS is '$(UNKNOWN_TESTS)', but must be among: $(notdir $(ALL_TEST_FILES:.bats=)))
endif
NAMED_TEST_FILES := $(addprefix $(ROOT)/tests/,$(addsuffix .bats,$(TESTS)))
LONGEST_TESTS := %/07_pipelined_gemm.bats %/layouts.bats %/emulator_record.bats %/makefile.bats %/02_tma_load.bats
longest_tests_first = $(filter $(LONGEST_TESTS),$(1)) $(filter-out $(LONGEST_TESTS),$(1))

# ---- What there is to build ----
CHAPTER_SOURCES := $(foreach c,$(CHAPTERS),$(wildcard $(ROOT)/$(c)/*.cu $(ROOT)/$(c)/pitfalls/*.cu))
TEST_SOURCES := $(wildcard $(ROOT)/tests/$(TESTED)/*.cu)
TEST_C_SOURCES := $(wildcard $(ROOT)/tests/$(TESTED)/*.c)
program = $(patsubst $(ROOT)/%,$(BUILD)/%,$(basename $(1)))
# A program may ask for libraries of the toolkit in a line "// link: -lcublas"; where the toolkit has
# them not (the fetched one), that program is left out and said so.
LINKING_SOURCES := $(if $(CHAPTER_SOURCES),$(shell grep -l '^// link: ' $(CHAPTER_SOURCES)))
wanted_libraries = $(if $(filter $(1),$(LINKING_SOURCES)),$(shell sed -n 's|^// link: ||p' $(1)))
lacks_libraries = $(if $(strip $(foreach l,$(filter-out -ldl,$(call wanted_libraries,$(1))),\
  $(if $(wildcard $(CUDA_LIBRARIES)/lib$(patsubst -l%,%,$(l)).so),,lacking))),$(1))
LEFT_OUT := $(strip $(foreach s,$(LINKING_SOURCES),$(call lacks_libraries,$(s))))
ifneq ($(and $(LEFT_OUT),$(filter all check check-all bench,$(GOALS))),)
$(info left out: $(notdir $(LEFT_OUT)): libraries it links are not in $(CUDA))
endif
PROGRAMS := $(call program,$(filter-out $(LEFT_OUT),$(CHAPTER_SOURCES)))
# What measures is compiled by check-all, but only run for its usage: optimising it for the GPU would take five times
# as long, so check-all has its own, built without, and as one program, because all of them use the same kernels.
BENCH_PROGRAMS := $(foreach p,$(PROGRAMS),$(if $(filter bench_%,$(notdir $(p))),$(p)))
PITFALL_PROGRAMS := $(foreach p,$(PROGRAMS),$(if $(findstring /pitfalls/,$(p)),$(p)))
LESSON_PROGRAMS := $(filter-out $(BENCH_PROGRAMS) $(PITFALL_PROGRAMS),$(PROGRAMS))
UNOPTIMISED_SOURCES := $(patsubst $(BUILD)/%,$(ROOT)/%.cu,$(BENCH_PROGRAMS))
UNOPTIMISED_PROGRAM := $(if $(strip $(UNOPTIMISED_SOURCES)),$(BUILD)/tests/joined/unoptimised/joined)
# Its kernels for every layout take longest of all to compile, and only tests/layouts.bats runs them.
SLOW_LESSON := $(filter %/07_pipelined_gemm/layouts,$(LESSON_PROGRAMS))
FIXED_PROGRAMS := $(subst /pitfalls/,/fixed/,$(filter $(BUILD)/%,$(call program,\
  $(patsubst %.fix,%.cu,$(wildcard $(addprefix $(ROOT)/,$(addsuffix /pitfalls/*.fix,$(CHAPTERS))))))))
# check compiles the pitfalls of a chapter as one program, and their fixed twins as another: that takes a tenth
# of the time (tests/join.py says why). It also builds each pitfall whose whole path a test that is run, $(1), or
# a README writes out.
JOINED_PROGRAMS := $(foreach c,$(CHAPTERS),$(if $(wildcard $(ROOT)/$(c)/pitfalls/*.cu),\
  $(BUILD)/tests/joined/$(c)/pitfalls/joined $(BUILD)/tests/joined/$(c)/fixed/joined))
named_pitfalls = $(filter $(addprefix $(BUILD)/,$(if $(COMPILING),$(shell cd $(ROOT) && { \
  ls tests/recorded/*/*.report.txt | sed -E 's|tests/recorded/(.*)/(.*)\.report\.txt|\1/pitfalls/\2|'; \
  grep -ohE '[0-9]{2}_[a-z0-9_]+/pitfalls/[a-z0-9_]+($$|[^a-z0-9_.*])' $(1) *.md */README.md common/emulator/*.md | \
    sed 's/[^a-z0-9_]$$//'; } | sort -u))),$(PITFALL_PROGRAMS))
# Exercises to write: skeletons, their solutions, and a judge for each chapter.
EXERCISE_SOURCES := $(wildcard $(addprefix $(ROOT)/,$(addsuffix /exercises/*.cu,$(CHAPTERS))))
SKELETONS := $(addsuffix .ptx,$(call program,$(EXERCISE_SOURCES)))
SOLUTIONS := $(SKELETONS:.ptx=.solved.ptx)
JUDGES := $(call program,$(wildcard $(addprefix $(ROOT)/,$(addsuffix /exercises/judge.c,$(CHAPTERS)))))
# Relocatable device code: several files to one program.
LINKED_SOURCES := $(wildcard $(ROOT)/tests/$(TESTED)/linked/*.cu)
LINKED_PROGRAM := $(if $(LINKED_SOURCES),$(BUILD)/tests/emulator/linked/linked)
# Programs that are built unlike all others: each names its options in a line "build:", and is left out
# where the toolkit lacks a library among them.
OUTSIDE_SOURCES := $(wildcard $(ROOT)/tests/$(TESTED)/outside/*)
outside_options = $(shell sed -n 's!^.. *build: !!p' $(1))
outside_lacks = $(strip $(foreach l,$(patsubst -l%,%,$(filter -l%,$(2))),\
  $(if $(wildcard $(CUDA_LIBRARIES)/lib$(l).so $(CUDA_LIBRARIES)/lib$(l).a),,$(1))))
OUTSIDE_PROGRAMS := $(if $(COMPILING),$(call program,$(filter-out \
  $(foreach s,$(OUTSIDE_SOURCES),$(call outside_lacks,$(s),$(call outside_options,$(s)))),$(OUTSIDE_SOURCES))))
# The pairs of wrappers and libcu++'s functions, where the toolkit has the latter.
TRANSLATED := $(if $(and $(LINKED_SOURCES),$(COMPILING),$(wildcard $(addprefix $(CUDA)/include/,cuda/ptx cccl/cuda/ptx))),\
  $(BUILD)/tests/translations/pairs.ptx)
# A kernel for each line of a list.
LISTED_PROGRAMS := $(if $(LINKED_SOURCES),$(addprefix $(BUILD)/tests/emulator/,alu_cases video_cases))
# What make take writes. check compiles the examples in all headers as one program; check-all each header in a folder
# of its own, with its example, and all of them together.
TAKEN_CHAPTERS := $(sort $(foreach f,$(wildcard $(addprefix $(ROOT)/,$(addsuffix /take/*.*,$(CHAPTERS)))),\
  $(firstword $(subst _, ,$(patsubst $(ROOT)/%,%,$(f))))))
TAKEN_EXAMPLES := $(if $(filter $(ROOT),$(CURDIR)),$(BUILD)/tests/take/examples/joined)
TAKEN_PROGRAMS := $(if $(TAKEN_EXAMPLES),$(foreach c,$(TAKEN_CHAPTERS) all,$(BUILD)/tests/take/$(c)/example))
TEST_PROGRAMS := $(call program,$(filter-out $(ROOT)/tests/take/% $(ROOT)/tests/translations/%,$(TEST_SOURCES))) $(JOINED_PROGRAMS) \
  $(LINKED_PROGRAM) $(LISTED_PROGRAMS) $(OUTSIDE_PROGRAMS) $(TRANSLATED)
TEST_C_PROGRAMS := $(call program,$(TEST_C_SOURCES))
# Of the programs of tests those whose name is in one of these files, outside of comments and titles.
# The joined ones and those of take have no name of their own.
words_of = $(if $(1),$(shell cat $(1) $(ROOT)/tests/helpers.bash | sed 's/^ *\#.*//; s/^@test "[^"]*"//' | \
  grep -oE '[a-z0-9_]+' | sort -u))
among_words = $(foreach p,$(TEST_PROGRAMS) $(TEST_C_PROGRAMS),$(if $(filter joined $(1),$(basename $(notdir $(p)))),$(p)))
programs_of_tests = $(call among_words,$(call words_of,$(1)))
solutions_of_tests = $(filter $(addprefix %/,$(addsuffix .solved.ptx,$(call words_of,$(1)))),$(SOLUTIONS))
MAIN_PROGRAMS := $(foreach c,$(CHAPTERS),\
  $(filter $(BUILD)/$(c)/$(shell sed 's/^[0-9]*_//' <<<$(c)),$(PROGRAMS)))
# PROGRAM=name runs other programs than the main ones: 02_tma_load/ranks, or ranks for those of all
# chapters.
programs_named = $(filter $(foreach folder,$(BUILD) $(addprefix $(BUILD)/,$(CHAPTERS)),\
  $(folder)/$(subst %,\%,$(1))),$(PROGRAMS))
RUN_PROGRAMS := $(if $(PROGRAM),$(foreach p,$(PROGRAM),$(call programs_named,$(p))),$(MAIN_PROGRAMS))
UNKNOWN_PROGRAM := $(firstword $(foreach p,$(PROGRAM),$(if $(call programs_named,$(p)),,$(p))))
ifneq ($(and $(filter run,$(GOALS)),$(UNKNOWN_PROGRAM)),)
define unknown_program
PROGRAM is '$(UNKNOWN_PROGRAM)', but there is no such program; there are:
$() $(foreach c,$(CHAPTERS),$(c): $(notdir $(filter-out $(BUILD)/$(c)/pitfalls/%,$(filter $(BUILD)/$(c)/%,$(PROGRAMS))))
)and each pitfall NAME as pitfalls/NAME
endef
$(error $(unknown_program))
endif

COMMON_SOURCES := $(filter-out $(ROOT)/common/tensor_map_command.c $(ROOT)/common/find_device.c,\
  $(wildcard $(ROOT)/common/*.c))
COMMON_OBJECTS := $(patsubst $(ROOT)/%.c,$(BUILD)/%.o,$(COMMON_SOURCES))
COMMON_LIBRARY := $(BUILD)/common/libcommon.a
TENSOR_MAP_COMMAND := $(if $(wildcard $(ROOT)/common/tensor_map_command.c),\
  $(BUILD)/common/tensor-map)
# The emulator encodes tensor maps with the very files that the lessons use; the one that asks the
# driver is not among them.
EMULATOR_SOURCES := $(wildcard $(ROOT)/common/emulator/*/*.c) \
  $(filter-out %/tensor_map_encode.c %/tensor_map_command.c,$(wildcard $(ROOT)/common/tensor_map*.c))
EMULATOR_OBJECTS := $(patsubst $(ROOT)/common/%.c,$(BUILD)/emulator/objects/%.o,$(EMULATOR_SOURCES))
# What runs once a program or a launch is not faster for it, and compiled once, for both.
ONCE_OBJECTS := $(filter $(foreach f,ptx load record runtime,$(BUILD)/emulator/objects/emulator/$(f)/%) \
  $(BUILD)/emulator/objects/tensor_map%,$(EMULATOR_OBJECTS))
FAST_OBJECTS := $(if $(FAST_LEVEL),$(ONCE_OBJECTS) $(patsubst $(BUILD)/emulator/objects/%,\
  $(BUILD)/emulator/objects-$(FAST_LEVEL)/%,$(filter-out $(ONCE_OBJECTS),$(EMULATOR_OBJECTS))))
FAST_EMULATOR := $(BUILD)/emulator/glibc-hwcaps/$(FAST_LEVEL)
OLD_EMULATOR := $(BUILD)/emulator/haswell$(if $(filter %-v4,$(FAST_LEVEL)),/avx512_1)/libcuda.so.1
EMULATOR := $(BUILD)/emulator/libcudart.so.13 $(BUILD)/emulator/libcuda.so.1 \
  $(if $(FAST_LEVEL),$(FAST_EMULATOR)/libcudart.so.13 $(FAST_EMULATOR)/libcuda.so.1 $(OLD_EMULATOR))
FIND_DEVICE := $(BUILD)/common/find-device
SUPPORT := $(TENSOR_MAP_COMMAND) $(FIND_DEVICE) $(EMULATOR)

# What takes longest is begun first, so that no processor is idle at the end.
LONGEST := %/layouts %/pipelined_gemm %/take/07/example %/take/all/example %/take/examples/joined %/unoptimised/joined %/bench_ladder %/bench_shapes %/wgmma_cases %/alu_cases
long_first = $(foreach longest,$(LONGEST),$(filter $(longest),$(1))) $(1)

.PHONY: all run check check-programs check-all check-all-programs bench bench-emulator measure-clock figures format clean help emulator tests pitfalls
.PHONY: exercise exercises hint watch rooms take book check-page check-readmes lint-page
.DEFAULT_GOAL := all

all: $(call long_first,$(PROGRAMS)) $(SUPPORT) ## build everything (of this chapter)

run: $(call long_first,$(RUN_PROGRAMS)) $(SUPPORT) ## build and run the main program of every chapter, in order
	@$(ROOT)/common/run-chapters $(RUN_PROGRAMS)

check: check-programs ## build and test the lessons; the last line is "N passed, N failed, N skipped"
	@$(ROOT)/common/check-chapters $(call longest_tests_first,$(or $(NAMED_TEST_FILES),$(CHECK_FILES)))

# Each pitfall in four times as many orders, too.
check-all: export PITFALL_ORDERS := 20
check-all: check-all-programs ## run every test: also all of the emulator's, and the slowest lesson
	@$(ROOT)/common/check-chapters $(call longest_tests_first,$(or $(NAMED_TEST_FILES),$(ALL_TEST_FILES)))

# $(1): all files of tests that are to be run
programs_to_check = $(call long_first,$(filter-out $(SLOW_LESSON),$(LESSON_PROGRAMS)) $(call named_pitfalls,$(1)) \
  $(call programs_of_tests,$(1)) $(TAKEN_EXAMPLES)) $(SUPPORT) $(JUDGES) $(call solutions_of_tests,$(1))
check-programs: $(if $(COMPILING),$(call programs_to_check,$(CHECK_FILES) $(NAMED_TEST_FILES))) \
  $(if $(filter %/take.bats,$(NAMED_TEST_FILES)),$(TAKEN_PROGRAMS)) \
  $(if $(filter %/solutions.bats,$(NAMED_TEST_FILES)),$(SKELETONS) $(SOLUTIONS)) \
  $(if $(filter %/layouts.bats,$(NAMED_TEST_FILES)),$(SLOW_LESSON)) \
  $(if $(filter %/benchmarks.bats,$(NAMED_TEST_FILES)),$(UNOPTIMISED_PROGRAM))
check-all-programs: check-programs $(SLOW_LESSON) $(UNOPTIMISED_PROGRAM) tests \
  $(if $(COMPILING),$(call named_pitfalls,$(ALL_TEST_FILES)))

tests: $(TEST_PROGRAMS) $(TEST_C_PROGRAMS) $(TAKEN_EXAMPLES) $(TAKEN_PROGRAMS) $(SKELETONS) $(SOLUTIONS) $(JUDGES)

# Without a GPU nothing is built: the benchmarks take minutes to compile.
bench: $(FIND_DEVICE) ## measure on the GPU: tables and CSV files under build/ (without a GPU it says so)
	@if [ "$(DEVICE)" != emulator ] && $(FIND_DEVICE) >/dev/null; then $(MAKE) --no-print-directory all; fi
	@$(ROOT)/common/bench-chapters $(CHAPTERS)

measure-clock: $(LESSON_PROGRAMS) $(BUILD)/tests/emulator/clock_ladder ## measure the parameters of the emulator's clock (needs an H200 and ncu)
	@mkdir -p $(BUILD)/emulator_clock
	$(Q)for program in measure measure_load measure_share; do \
	  $(NVCC) $(NVCC_FLAGS) $(ARCHITECTURES) -I$(ROOT)/common -o $(BUILD)/emulator_clock/$$program \
	    $(ROOT)/common/emulator/clock/$$program.cu $(BUILD)/common/libcommon.a || exit 2; done
	@$(ROOT)/common/emulator/clock/measure.sh

bench-emulator: $(addprefix $(BUILD)/tests/emulator/,bench bench_engines bench_checks) $(EMULATOR) ## measure how fast the emulator itself is
	@$(BUILD)/tests/emulator/bench
	@for threads in 1 $$(nproc); do echo "$$threads host threads:"; EMULATOR_THREADS=$$threads \
	  $(ROOT)/common/emulator/emulate $(BUILD)/tests/emulator/bench_engines | sed '1d;$$d'; done
	@echo "What the checks cost:"; $(ROOT)/tests/emulator/bench_checks.sh $(BUILD)/tests/emulator/bench_checks

figures: $(PROGRAMS) $(EMULATOR) ## draw the figures and write the measured tables into the READMEs
	@python3 $(ROOT)/common/figures.py $(addprefix $(ROOT)/,$(CHAPTERS))
	@python3 -B $(ROOT)/common/draw.py $(addprefix $(ROOT)/,$(CHAPTERS))

pitfalls: $(PITFALL_PROGRAMS) $(SUPPORT) ## run every mistake of the chapters and show what is reported
	@$(ROOT)/common/show-pitfalls $(CHAPTERS)

exercise: $(SUPPORT) ## start the next exercise in build/exercises/, or judge the one that you have (EXERCISE=number: that one)
	@$(ROOT)/common/exercise start $(CHAPTERS)

exercises: ## list all exercises, by difficulty, and which of them you have solved
	@$(ROOT)/common/exercise list $(CHAPTERS)

watch: ## build and run again whenever a file of the chapter is saved (make watch-02, or PROGRAM=name)
	@$(ROOT)/common/watch-chapter "$(PROGRAM)" $(CHAPTERS)

hint: ## one more hint for the exercise
	@$(ROOT)/common/exercise hint $(CHAPTERS)

take: ## write what the chapters offer as self-contained headers: make take-02 TO=dir
	@$(ROOT)/common/take $(if $(filter $(ROOT),$(CURDIR)),,$(firstword $(subst _, ,$(CHAPTERS))))

book: all ## write the chapters and a page to step through every program to build/book/index.html
	@python3 -B $(ROOT)/common/book/book.py $(BUILD)/book

emulator: $(EMULATOR) ## build the emulator alone

rooms: $(EMULATOR) ## draw which folder of the emulator calls which, into its README
	@$(ROOT)/common/emulator/rooms draw

check-page: all tests ## show ten recordings in a headless browser, at 200 moments each
	@bats=$$($(ROOT)/common/find-bats $(BUILD)) && $$bats $(ROOT)/tests/long/page.bats

check-readmes: all tests ## run every command of every README, and compare the outputs that are shown there
	@python3 -B $(ROOT)/tests/readme_commands.py --all

lint-page: ## look over the script of the emulator's page with eslint
	@$(ROOT)/common/emulator/page/lint

format: ## lay out all C and CUDA sources with clang-format
	@command -v clang-format >/dev/null || { echo "clang-format is not installed; on Debian: apt-get install clang-format" >&2; exit 2; }
	$(Q)cd $(ROOT) && git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

clean: ## remove what was built (not a fetched toolkit)
	$(Q)rm -rf $(if $(filter $(ROOT),$(CURDIR)),\
	  $(filter-out $(BUILD)/cuda $(BUILD)/bats,$(wildcard $(BUILD)/*)),$(addprefix $(BUILD)/,$(CHAPTERS)))

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' $(ROOT)/common/lesson.mk | \
	  while IFS=$$'\t' read -r goal text; do printf '  make %-16s %s\n' "$$goal" "$$text"; done
	@printf '  make %-16s %s\n' 'run-02' 'run, check, bench, pitfalls, exercise(s), hint, watch and take also take a chapter'
	@sed -n 's/^#   /  /p' $(ROOT)/common/lesson.mk

# run-02, check-02 and so on: the goal of that chapter alone.
ifeq ($(CURDIR),$(ROOT))
define chapter_goal
$(1)-%:
	@case '$$*' in [0-9]) number=0$$*;; [0-9][0-9]) number=$$*;; *) number=none;; esac; \
	chapter=$$$$(cd $(ROOT) && ls -d $$$${number}_* 2>/dev/null | head -n 1); \
	if [ -z "$$$$chapter" ]; then \
	  echo "there is no chapter '$$*'; the chapters are: $(CHAPTERS)" >&2; exit 2; fi; \
	$$(MAKE) --no-print-directory -C $(ROOT)/$$$$chapter $(1)
endef
$(foreach goal,run check bench pitfalls exercise exercises hint watch,$(eval $(call chapter_goal,$(goal))))
take-%:
	@$(ROOT)/common/take '$*'
endif

# ---- What a file depends on besides its sources: how it is compiled ----
# build/flags/NAME holds TEXT, and what depends on that file is rebuilt when TEXT has changed.
remember = $(if $(call differ,$(strip $(file <$(BUILD)/flags/$(1))),$(strip $(2))),$(if $(ONLY_ASKED),\
  $(eval .PHONY: $(BUILD)/flags/$(1)),$(shell mkdir -p $(BUILD)/flags)$(file >$(BUILD)/flags/$(1),$(2))))
differ = $(or $(subst x$(1)x,,x$(2)x),$(subst x$(2)x,,x$(1)x))
# -Bsymbolic: its calls of CUDA's functions are its own, whatever other copy of CUDA a program has loaded.
LINK_EMULATOR = -shared $(SANITIZE) -Wl,-soname,libcudart.so.13 -Wl,-z,defs -Wl,-Bsymbolic \
  -Wl,--version-script=$(ROOT)/common/emulator/exports.map
# Run by hand a program finds the runtime of the toolkit, or the emulator where there is no Hopper:
# build/device leads there then.
LINK_PATHS := -Xlinker -rpath=$(BUILD)/device -Xlinker -rpath=$(CUDA_LIBRARIES)
ifneq ($(COMPILING),)
$(call remember,cc,$(CC) $(CC_FLAGS) $(realpath $(CUDA)))
$(call remember,emulator,$(CC) $(EMULATOR_FLAGS) $(LEVEL_OF_BASELINE) $(FLAGS_x86-64-v2) $(LINK_EMULATOR) $(realpath $(CUDA)))
$(call remember,tests,$(FAST_LEVEL))
$(if $(UNOPTIMISED_PROGRAM),$(call remember,unoptimised,$(UNOPTIMISED_SOURCES)))
$(call remember,nvcc,$(NVCC_FLAGS) $(ARCHITECTURES) $(LINK_PATHS) $(realpath $(CUDA)))
endif
CC_MADE := $(BUILD)/flags/cc
EMULATOR_MADE := $(BUILD)/flags/emulator
NVCC_MADE := $(COMMON_LIBRARY) $(BUILD)/flags/nvcc
# Written when this file is read; make may have looked for them before.
$(CC_MADE) $(EMULATOR_MADE) $(addprefix $(BUILD)/flags/,nvcc tests unoptimised): ;

# ---- How it is built ----
# Each step is counted, and their number is found out first. What was counted is in a folder of this make
# alone, because two may run at once; those of makes that have ended are removed.
counted = $(ROOT)/common/step $(patsubst $(BUILD)/%,%,$@)
step = $(Q)$(counted)
ifeq ($(COMPILING),)
else ifeq ($(STEPS_TOTAL)$(ONLY_ASKED),)
export STEPS_TOTAL := $(shell env -u MAKELEVEL MAKEFLAGS=$(call quoted,n -- $(MAKEOVERRIDES)) \
  $(MAKE) CUDA_FOUND=$(CUDA) STEPS_TOTAL=1 $(GOALS) 2>/dev/null | grep -c 'common/step ')
export STEPS := $(BUILD)/steps/$(shell echo $$PPID)
$(shell cd $(BUILD)/steps 2>/dev/null && for make in *; do kill -0 $$make 2>/dev/null || rm -rf $$make; done; \
  rm -rf $(STEPS) && mkdir -p $(STEPS) && cd $(STEPS) && : >ended && : >shown.0 && date +%s >began)
endif

# -MT: ccache with a base_dir would else name the object by another path than this file does, and
# a changed header would rebuild nothing.
$(BUILD)/common/%.o: $(ROOT)/common/%.c $(CC_MADE)
	@mkdir -p $(@D)
	$(step) $(CC) $(CC_FLAGS) -MMD -MP -MT $@ -c $< -o $@

$(COMMON_LIBRARY): $(COMMON_OBJECTS)
	$(Q)rm -f $@
	$(step) $(AR) rcs $@ $^

$(BUILD)/common/tensor-map: $(BUILD)/common/tensor_map_command.o $(filter $(BUILD)/common/tensor_map%,$(COMMON_OBJECTS))
	$(step) $(CC) $(SANITIZE) -o $@ $(filter-out %/tensor_map_encode.o,$^) -lm

$(FIND_DEVICE): $(BUILD)/common/find_device.o
	$(step) $(CC) $(SANITIZE) -o $@ $^ -ldl

define build_cuda
	@mkdir -p $(@D)
	$(step) $(NVCC) $(NVCC_FLAGS) $(ARCHITECTURES) -I$(ROOT)/common -MMD -MP -MF $@.d -MT $@ -o $@ $< $(COMMON_LIBRARY) \
	  $(LINK_PATHS) $(foreach s,$(or $(MADE_OF),$<),$(call wanted_libraries,$(s)))
endef
$(PROGRAMS): $(BUILD)/%: $(ROOT)/%.cu $(NVCC_MADE)
	$(build_cuda)
# Tests hold PTX alone: it halves their compilation, and on a GPU the driver compiles it.
$(TEST_PROGRAMS) $(FIXED_PROGRAMS) $(UNOPTIMISED_PROGRAM): ARCHITECTURES := $(EMULATED)
# Pitfalls are lessons.
$(filter %/pitfalls/joined,$(JOINED_PROGRAMS)): ARCHITECTURES := $(SASS) $(EMULATED)
# Its kernels are never launched.
$(UNOPTIMISED_PROGRAM): NVCC_FLAGS += -Xcicc -O0
# The numbers of registers, and of loads under way, are in the machine code.
$(addprefix $(BUILD)/tests/emulator/,occupancy clock_copies): ARCHITECTURES := $(MACHINE_CODE) $(EMULATED)
# libcu++ asks for C++17.
$(addprefix $(BUILD)/tests/emulator/,foreign_barriers foreign_cub foreign_groups global_races endless_polls): STANDARD := c++17
$(call program,$(filter-out $(ROOT)/tests/take/%,$(TEST_SOURCES))): $(BUILD)/%: $(ROOT)/%.cu $(NVCC_MADE)
	$(build_cuda)

$(LINKED_PROGRAM): $(LINKED_SOURCES) $(NVCC_MADE)
	@mkdir -p $(@D)
	$(step) $(NVCC) $(NVCC_FLAGS) -rdc=true $(ARCHITECTURES) -o $@ $(LINKED_SOURCES) $(LINK_PATHS)

$(TRANSLATED): $(ROOT)/tests/translations/libcudacxx.cu $(wildcard $(ROOT)/[0-9][0-9]_*/*.cuh) $(BUILD)/flags/nvcc
	@mkdir -p $(@D)
	$(step) $(NVCC) -std=c++17 -arch=compute_90a -ptx -o $@ $<

TAKE_SOURCES := $(ROOT)/common/take $(ROOT)/common/take.awk $(ROOT)/common/tma_encode.h $(ROOT)/tests/join.py \
  $(wildcard $(ROOT)/tests/take/* $(addprefix $(ROOT)/[0-9][0-9]_*/,*.h *.cuh */*.h */*.cuh take/*))
$(TAKEN_PROGRAMS) $(TAKEN_EXAMPLES): $(TAKE_SOURCES) $(BUILD)/flags/nvcc
	$(step) $(ROOT)/tests/take/build $(patsubst $(BUILD)/tests/take/%/,%,$(dir $@)) '$(EMULATED)'

# "make build/02_tma_load/tma_load" builds that one program.
ifeq ($(CURDIR),$(ROOT))
build/%: $(BUILD)/% ;
endif

# Each pitfall fixed by its .fix, for the test that it has only that one mistake.
$(FIXED_PROGRAMS): $(BUILD)/%: $(BUILD)/%.cu $(NVCC_MADE)
	$(build_cuda)
.SECONDEXPANSION:
pitfall_file = $(subst $(BUILD)/,$(ROOT)/,$(subst /fixed/,/pitfalls/,$(1)))
$(FIXED_PROGRAMS:=.cu): %.cu: $$(call pitfall_file,%.cu) $$(call pitfall_file,%.fix)
	@mkdir -p $(@D)
	$(Q)patch --silent -o $@ $< $(word 2,$^)
	$(Q)sed -i 's|#include "\.\./|#include "$(patsubst $(BUILD)/%,$(ROOT)/%,$(abspath $(@D)/..))/|' $@

joined_folder = $(patsubst $(BUILD)/tests/joined/%/joined,%,$(1))
joined_sources = $(if $(findstring /unoptimised/,$(1)),$(UNOPTIMISED_SOURCES))$(filter $(ROOT)/$(joined_folder)/% $(BUILD)/$(joined_folder)/%,$(CHAPTER_SOURCES) $(FIXED_PROGRAMS:=.cu))
$(addsuffix .cu,$(JOINED_PROGRAMS) $(UNOPTIMISED_PROGRAM)): %.cu: $$(call joined_sources,$$*) $(ROOT)/tests/join.py
	@mkdir -p $(@D)
	$(Q)python3 -B $(ROOT)/tests/join.py $(filter %.cu,$^) >$@
$(addsuffix .cu,$(UNOPTIMISED_PROGRAM)): $(BUILD)/flags/unoptimised
$(JOINED_PROGRAMS) $(UNOPTIMISED_PROGRAM): MADE_OF = $(call joined_sources,$@)
$(JOINED_PROGRAMS) $(UNOPTIMISED_PROGRAM): %: %.cu $(NVCC_MADE)
	$(build_cuda)
	$(Q)for name in $(basename $(notdir $(MADE_OF))); do ln -sf joined $(@D)/$$name; done

$(OUTSIDE_PROGRAMS): $$(wildcard $(ROOT)/tests/emulator/outside/$$(@F).c $(ROOT)/tests/emulator/outside/$$(@F).cu) $(NVCC_MADE)
	@mkdir -p $(@D)
	$(step) $(NVCC) -std=$(STANDARD) $(filter-out -l%,$(call outside_options,$<)) $(addprefix -Xcompiler ,$(subst $(comma),\\$(comma),$(SANITIZE))) \
	  -I$(ROOT)/common -o $@ $< $(COMMON_LIBRARY) $(filter -l%,$(call outside_options,$<))

# What a reader repairs. Exercises are judged on the emulator, which needs only PTX.
EXERCISES ?= $(BUILD)/exercises
$(EXERCISES)/%: NVCC_FLAGS += -I$(ROOT)
$(EXERCISES)/%: ARCHITECTURES := $(EMULATED)
$(EXERCISES)/%: $(EXERCISES)/%.cu $(NVCC_MADE)
	$(build_cuda)

# What a reader writes: PTX alone, which the chapter's judge loads. The gap leaves things unused.
define build_ptx
	@mkdir -p $(@D)
	$(step) $(NVCC) -std=$(STANDARD) -O3 -lineinfo -arch=compute_90a -ptx -diag-suppress 177,550 \
	  -I$(ROOT) -I$(ROOT)/common -I$(<D) $(1) -MMD -MP -MF $@.d -MT $@ -o $@ $<
endef
$(EXERCISES)/%.ptx: $(EXERCISES)/%.cu
	$(build_ptx)
$(SKELETONS): $(BUILD)/%.ptx: $(ROOT)/%.cu
	$(build_ptx)
$(SOLUTIONS:.ptx=.cu): $(BUILD)/%.solved.cu: $(ROOT)/%.cu $(ROOT)/%.solution
	@mkdir -p $(@D)
	$(Q)patch --silent -o $@ $< $(word 2,$^)
$(SOLUTIONS): %.ptx: %.cu
	$(call build_ptx,-I$(patsubst $(BUILD)/%,$(ROOT)/%,$(<D)))
$(JUDGES): $(BUILD)/%: $(ROOT)/%.c $(NVCC_MADE) $(CC_MADE)
	@mkdir -p $(@D)
	$(step) $(CC) $(CC_FLAGS) -I$(ROOT)/common -MMD -MP -MF $@.d -MT $@.o -c $< -o $@.o
	$(Q)$(NVCC) -cudart shared $(addprefix -Xcompiler ,$(subst $(comma),\\$(comma),$(SANITIZE))) -o $@ $@.o $(COMMON_LIBRARY) $(LINK_PATHS)

$(LISTED_PROGRAMS:=.cu): $(BUILD)/%.cu: $(ROOT)/%.txt $(BUILD)/tests/emulator/alu_generate
	$(Q)$(BUILD)/tests/emulator/alu_generate $< >$@
# Optimising the host's stubs of so many kernels takes two thirds of the time.
$(LISTED_PROGRAMS): HOST_LEVEL := -O0
$(LISTED_PROGRAMS): NVCC_FLAGS += -I$(ROOT)/tests/emulator $(if $(filter %video_cases,$@),-DKEPT_ANSWERS=64)
$(LISTED_PROGRAMS): %: %.cu $(NVCC_MADE)
	$(build_cuda)

# Programs wait for the common library. The emulator does too: else make would begin all of it before the first of them.
$(sort $(EMULATOR_OBJECTS) $(FAST_OBJECTS)): | $(if $(MAIN_PROGRAMS),$(COMMON_LIBRARY))
# Its functions stay on the stack, where runtime/wild_pointers.c finds a call's name.
$(ONCE_OBJECTS): LEVEL_OF_BASELINE := -O2 -fno-optimize-sibling-calls
$(BUILD)/emulator/objects/%.o: $(ROOT)/common/%.c $(EMULATOR_MADE)
	@mkdir -p $(@D)
	$(step) $(CC) $(EMULATOR_FLAGS) $(LEVEL_OF_BASELINE) $(FLAGS_x86-64-v2) -MMD -MP -MT $@ -c $< -o $@
$(BUILD)/emulator/objects-$(FAST_LEVEL)/%.o: $(ROOT)/common/%.c $(EMULATOR_MADE)
	@mkdir -p $(@D)
	$(step) $(CC) $(EMULATOR_FLAGS) -O3 $(FLAGS_$(FAST_LEVEL)) -MMD -MP -MT $@ -c $< -o $@

# The version script gives the symbols the version node that executables ask for, and exports
# nothing but CUDA's own names.
$(BUILD)/emulator/libcudart.so.13: $(EMULATOR_OBJECTS)
$(FAST_EMULATOR)/libcudart.so.13: $(FAST_OBJECTS)
$(filter %/libcudart.so.13,$(EMULATOR)): $(ROOT)/common/emulator/exports.map
	@mkdir -p $(@D)
	$(Q)new=$@.new.$$$$; $(counted) $(CC) $(LINK_EMULATOR) -o $$new $(filter %.o,$^) -pthread -ldl -lm && \
	  mv $$new $@
$(filter-out $(OLD_EMULATOR),$(filter %/libcuda.so.1,$(EMULATOR))): %/libcuda.so.1: %/libcudart.so.13
	$(Q)ln -sf libcudart.so.13 $@
# Where glibc before 2.33 looks for the better one.
$(OLD_EMULATOR): $(FAST_EMULATOR)/libcuda.so.1
	@mkdir -p $(@D)
	$(Q)ln -srf $(FAST_EMULATOR)/lib* $(@D)

# Tests that call the emulator's functions are linked with the better one's.
emulator_objects = $(if $(filter $(BUILD)/tests/emulator/%,$(filter-out %/alu_generate,$(1))),\
  $(or $(FAST_OBJECTS),$(EMULATOR_OBJECTS)))
$(TEST_C_PROGRAMS): $(BUILD)/%: $(ROOT)/%.c $$(call emulator_objects,$$@) $(EMULATOR_MADE) $(BUILD)/flags/tests
	@mkdir -p $(@D)
	$(step) $(CC) $(EMULATOR_FLAGS) $(if $(filter %/bench,$@),-O3,-O1) $(FLAGS_$(or $(FAST_LEVEL),x86-64-v2)) \
	  -MMD -MP -MF $@.d -MT $@ -o $@ $< $(filter %.o,$^) -pthread -ldl -lm

-include $(COMMON_OBJECTS:.o=.d) $(BUILD)/common/tensor_map_command.d $(EMULATOR_OBJECTS:.o=.d) \
  $(FAST_OBJECTS:.o=.d)
-include $(addsuffix .d,$(PROGRAMS) $(UNOPTIMISED_PROGRAM) $(TEST_PROGRAMS) $(TEST_C_PROGRAMS) \
  $(SKELETONS) $(SOLUTIONS) $(JUDGES))
