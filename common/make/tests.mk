# tests.mk: the files of tests, and the programs that they run.

# check runs what belongs to the lessons, and takes at most a minute of two cores.
# check-all also runs what takes longer, or is about the project and not about a lesson: the emulator's tests, those of
# chapter 07's library and attention, the fixed twins of the pitfalls, what the READMEs promise, the book, drawings and figures,
# 07_pipelined_gemm/library/layouts with its kernels for every layout, the benchmarks' usage, this file, the recordings, and the
# headers of make take and the solutions of the exercises one by one.
# At the root all tests; in a chapter its own and those of its rooms (tests/library.bats), with their programs.
EMULATOR_TESTS := $(wildcard $(ROOT)/emulator/tests/*.bats)
TESTED := $(if $(WHOLE),*,$(CHAPTERS))
TESTED_ROOMS := $(if $(WHOLE),,$(addprefix $(ROOT)/tests/,$(notdir $(filter-out $(CHAPTERS),$(ROOMS)))))
ALL_TEST_FILES := $(wildcard $(ROOT)/tests/$(TESTED).bats $(TESTED_ROOMS:=.bats)) $(if $(WHOLE),$(EMULATOR_TESTS))
ONLY_IN_CHECK_ALL := $(if $(WHOLE),$(filter $(EMULATOR_TESTS) $(patsubst %,$(ROOT)/tests/%.bats,attention benchmarks book drawings fetching \
  figures later_gpus layouts library makefile readmes recorded repairs solutions take taken terminal tests translations),$(ALL_TEST_FILES)))
CHECK_FILES := $(filter-out $(ONLY_IN_CHECK_ALL),$(ALL_TEST_FILES))
# TESTS=name... runs other files: lanes, or readmes.
UNKNOWN_TESTS := $(filter-out $(notdir $(ALL_TEST_FILES:.bats=)),$(TESTS))
ifneq ($(and $(filter check check-all,$(GOALS)),$(UNKNOWN_TESTS)),)
$(error TESTS is '$(UNKNOWN_TESTS)', but must be among: $(notdir $(ALL_TEST_FILES:.bats=)))
endif
NAMED_TEST_FILES := $(filter $(addprefix %/,$(addsuffix .bats,$(TESTS))),$(ALL_TEST_FILES))
LONGEST_TESTS := %/07_pipelined_gemm.bats %/layouts.bats %/record.bats %/makefile.bats %/02_tma_load.bats
longest_tests_first = $(filter $(LONGEST_TESTS),$(1)) $(filter-out $(LONGEST_TESTS),$(1))

TEST_FOLDERS := $(ROOT)/tests/$(TESTED) $(if $(WHOLE),$(ROOT)/emulator/tests,$(TESTED_ROOMS))
TEST_SOURCES := $(wildcard $(addsuffix /*.cu,$(TEST_FOLDERS)))
# Programs that measure are only run for their usage: optimising them for the GPU would take five times as long, so they
# are built without, and as one program, because all of them use the same kernels.
UNOPTIMISED_SOURCES := $(patsubst $(BUILD)/%,$(ROOT)/%.cu,$(BENCH_PROGRAMS))
UNOPTIMISED_PROGRAM := $(if $(strip $(UNOPTIMISED_SOURCES)),$(BUILD)/tests/joined/unoptimised/joined)
# The pitfalls of a chapter are compiled as one program, and their fixed twins as another: that takes a tenth of the
# time (tests/join.py says why).
JOINED_PROGRAMS := $(foreach c,$(ROOMS),$(if $(wildcard $(ROOT)/$(c)/pitfalls/*.cu),\
  $(BUILD)/tests/joined/$(c)/pitfalls/joined $(BUILD)/tests/joined/$(c)/fixed/joined))
# Relocatable device code: several files to one program.
LINKED_SOURCES := $(wildcard $(addsuffix /linked/*.cu,$(TEST_FOLDERS)))
LINKED_PROGRAM := $(if $(LINKED_SOURCES),$(BUILD)/emulator/tests/linked/linked)
# Programs that are built unlike all others: each names its options in a line "build:", and is left out
# where the toolkit lacks a library among them.
OUTSIDE_SOURCES := $(wildcard $(addsuffix /outside/*,$(TEST_FOLDERS)))
OUTSIDE_OPTIONS := $(if $(and $(OUTSIDE_SOURCES),$(COMPILING)),$(shell \
  awk 'sub(/^.. *build: /, "") { gsub(" ", "|"); print FILENAME "|" $$0 }' $(OUTSIDE_SOURCES)))
outside_options = $(subst |, ,$(patsubst $(1)|%,%,$(filter $(1)|%,$(OUTSIDE_OPTIONS))))
outside_lacks = $(strip $(foreach l,$(patsubst -l%,%,$(filter -l%,$(2))),\
  $(if $(wildcard $(CUDA_LIBRARIES)/lib$(l).so $(CUDA_LIBRARIES)/lib$(l).a),,$(1))))
# (Cross-compiled they would need a runtime of the other processor.)
OUTSIDE_PROGRAMS := $(if $(if $(CROSS),,$(COMPILING)),$(call program,$(filter-out \
  $(foreach s,$(OUTSIDE_SOURCES),$(call outside_lacks,$(s),$(call outside_options,$(s)))),$(OUTSIDE_SOURCES))))
# The pairs of wrappers and libcu++'s functions, where the toolkit has the latter.
TRANSLATED := $(if $(and $(LINKED_SOURCES),$(COMPILING),$(wildcard $(addprefix $(CUDA)/include/,cuda/ptx cccl/cuda/ptx))),\
  $(BUILD)/tests/translations/pairs.ptx)
# A kernel for each line of a list.
LISTED_PROGRAMS := $(if $(LINKED_SOURCES),$(BUILD)/emulator/tests/alu_cases)
# What make take writes: the examples in all headers as one program, and each header in a folder of its own, with its
# example, and all of them together.
TAKEN_CHAPTERS := $(sort $(foreach f,$(wildcard $(addprefix $(ROOT)/,$(addsuffix /take/*.*,$(ROOMS)))),\
  $(firstword $(subst _, ,$(patsubst $(ROOT)/%,%,$(f))))))
TAKEN_EXAMPLES := $(if $(WHOLE),$(BUILD)/tests/take/examples/joined)
TAKEN_PROGRAMS := $(if $(TAKEN_EXAMPLES),$(foreach c,$(TAKEN_CHAPTERS) all,$(BUILD)/tests/take/$(c)/example))
TEST_PROGRAMS := $(call program,$(filter-out $(ROOT)/tests/take/% $(ROOT)/tests/translations/%,$(TEST_SOURCES))) $(JOINED_PROGRAMS) \
  $(LINKED_PROGRAM) $(LISTED_PROGRAMS) $(OUTSIDE_PROGRAMS) $(TRANSLATED)
TEST_C_PROGRAMS := $(patsubst $(ROOT)/%.c,$(BUILD)/%,$(wildcard $(addsuffix /*.c,$(TEST_FOLDERS))))

# What the files of tests $(1) need: the lessons whose name is in one of them, outside of comments and titles; all
# programs in a folder of tests/ with the file's name; for the emulator's tests, the programs whose name is in them; the
# pitfalls whose whole path is there; a chapter's own; and what their lines "# builds:" name, as patterns of make below
# build/ ("lessons": all of them, "quoted": the pitfalls that a Markdown file runs). With TESTS= that is all; else
# check also builds every lesson, and check-all everything.
QUICK_LESSONS := $(filter-out $(SLOW_LESSON),$(LESSON_PROGRAMS))
EVERYTHING := $(PROGRAMS) $(TEST_PROGRAMS) $(TEST_C_PROGRAMS) $(TAKEN_EXAMPLES) $(TAKEN_PROGRAMS) $(SKELETONS) $(SOLUTIONS) \
  $(JUDGES) $(TURNED_PROGRAMS) $(UNOPTIMISED_PROGRAM) $(PORTABLE_EMULATOR)
words_of = $(if $(1),$(shell sed 's/^ *\#.*//; s/^@test "[^"]*"//' $(1) | grep -oE '[a-z0-9_]+' | sort -u))
among_words = $(foreach p,$(2),$(if $(filter $(1),$(firstword $(subst ., ,$(notdir $(p))))),$(p)))
of_folder = $(filter $(foreach f,$(1),$(BUILD)/tests/$(basename $(notdir $(f)))/%),$(TEST_PROGRAMS) $(TEST_C_PROGRAMS))
of_chapter = $(foreach c,$(filter $(basename $(notdir $(1))),$(CHAPTERS)),\
  $(filter $(BUILD)/$(c)/%,$(QUICK_LESSONS)) $(filter $(BUILD)/tests/joined/$(c)/%pitfalls/joined,$(JOINED_PROGRAMS)))
named_pitfalls = $(filter $(addprefix $(BUILD)/,$(shell cd $(ROOT) && grep -ohE \
  '[0-9]{2}_[a-z0-9_/]+/pitfalls/[a-z0-9_]+($$|[^a-z0-9_.*])' $(1) | sed 's/[^a-z0-9_]$$//' | sort -u)),$(PITFALL_PROGRAMS))
QUOTING := $(wildcard $(addprefix $(ROOT)/,*.md */README.md */*/README.md emulator/*.md))
builds = $(filter $(addprefix $(BUILD)/,$(1)),$(EVERYTHING)) $(if $(filter lessons,$(1)),$(QUICK_LESSONS)) \
  $(if $(filter quoted,$(1)),$(call named_pitfalls,$(QUOTING)))
needs = $(if $(1),$(call among_words,$(call words_of,$(1)),$(QUICK_LESSONS) $(SOLUTIONS)) \
  $(call among_words,$(call words_of,$(filter $(EMULATOR_TESTS),$(1))),$(filter-out $(JOINED_PROGRAMS),$(TEST_PROGRAMS) $(TEST_C_PROGRAMS))) \
  $(call of_folder,$(1)) $(call of_chapter,$(1)) $(call named_pitfalls,$(1)) \
  $(call builds,$(shell sed -n 's/^\# builds: //p' $(1))))
ifneq ($(COMPILING),)
$(call remember,tests,$(LEVEL))
$(if $(UNOPTIMISED_PROGRAM),$(call remember,unoptimised,$(UNOPTIMISED_SOURCES)))
endif

# Tests hold PTX alone: it halves their compilation, and on a GPU the driver compiles it. -O1: optimising the host's
# stubs of many kernels takes a quarter of the time.
$(TEST_PROGRAMS) $(UNOPTIMISED_PROGRAM): ARCHITECTURES := $(EMULATED)
$(TEST_PROGRAMS) $(UNOPTIMISED_PROGRAM): HOST_LEVEL := -O1
# Pitfalls are lessons.
$(filter %/pitfalls/joined,$(JOINED_PROGRAMS)): ARCHITECTURES := $(LESSON_CODE)
# Its kernels are never launched.
$(UNOPTIMISED_PROGRAM): NVCC_FLAGS += -Xcicc -O0
# The numbers of registers, and of loads under way, are in the machine code.
$(addprefix $(BUILD)/emulator/tests/,occupancy clock_copies): ARCHITECTURES := $(MACHINE_CODE) $(EMULATED)
# libcu++ asks for C++17.
$(addprefix $(BUILD)/emulator/tests/,foreign_barriers foreign_cub foreign_groups global_races endless_polls handoff_cases): STANDARD := c++17
$(call program,$(filter-out $(ROOT)/tests/take/%,$(TEST_SOURCES))): $(BUILD)/%: $(ROOT)/%.cu $(NVCC_MADE)
	$(build_cuda)

# Every call that the emulator's library exports and does, which runtime/ defines.
EXPORTED_CALLS := $(BUILD)/emulator/tests/exported_calls.inc
$(EXPORTED_CALLS): $(ROOT)/emulator/tests/every_call.inc $(wildcard $(ROOT)/emulator/runtime/*) | $(EMULATOR)
	@mkdir -p $(@D)
	$(Q)grep -ohE '[A-Z_]+\((cu|__cuda)[A-Za-z_0-9]+' $< | sed 's/.*(//' >$@.others
	$(Q)nm $(firstword $(EMULATOR)) | sed -n 's/.* refused_//p' >>$@.others
	$(Q)nm -D --defined-only $(firstword $(EMULATOR)) | sed 's/.* //; s/@.*//' | grep -E '^cu(da)?[A-Z]' | \
	  grep -vxFf $@.others | sed 's/.*/CALL(&)/' >$@.new
	$(Q)rm $@.others
	$(Q)mv $@.new $@
$(BUILD)/emulator/tests/every_call: $(EXPORTED_CALLS)
$(BUILD)/emulator/tests/every_call: NVCC_FLAGS += -I$(BUILD)/emulator/tests

$(LINKED_PROGRAM): $(LINKED_SOURCES) $(NVCC_MADE)
	@mkdir -p $(@D)
	$(step) $(NVCC) $(NVCC_FLAGS) -rdc=true $(ARCHITECTURES) -o $@ $(LINKED_SOURCES) $(LINK_PATHS)

$(TRANSLATED): $(addprefix $(ROOT)/tests/translations/,libcudacxx.cu pairs.cuh) $(wildcard $(addprefix $(ROOT)/[0-9][0-9]_*/,*.cuh */*.cuh)) $(BUILD)/flags/nvcc
	@mkdir -p $(@D)
	$(step) $(NVCC) -std=c++17 -arch=compute_90a -ptx -o $@ $<

TAKE_SOURCES := $(ROOT)/common/exercises/take $(ROOT)/common/tma_encode.h $(ROOT)/tests/join.py \
  $(wildcard $(ROOT)/tests/take/* $(addprefix $(ROOT)/[0-9][0-9]_*/,*.h *.cuh */*.h */*.cuh take/* */take/*))
$(TAKEN_PROGRAMS) $(TAKEN_EXAMPLES): $(ROOT)/TRANSLATIONS.md $(TAKE_SOURCES) $(BUILD)/flags/nvcc
	$(step) $(ROOT)/tests/take/build $(patsubst $(BUILD)/tests/take/%/,%,$(dir $@)) '$(EMULATED)'

joined_folder = $(patsubst $(BUILD)/tests/joined/%/joined,%,$(1))
# The folder itself: a source that is gone is newer nowhere else.
joined_from = $(wildcard $(ROOT)/$(subst /fixed,/pitfalls,$(joined_folder)))
joined_sources = $(if $(findstring /unoptimised/,$(1)),$(UNOPTIMISED_SOURCES))$(filter $(ROOT)/$(joined_folder)/% $(BUILD)/$(joined_folder)/%,$(CHAPTER_SOURCES) $(FIXED_PROGRAMS:=.cu))
$(addsuffix .cu,$(JOINED_PROGRAMS) $(UNOPTIMISED_PROGRAM)): %.cu: $$(call joined_sources,$$*) $$(call joined_from,$$*) $(ROOT)/tests/join.py
	@mkdir -p $(@D)
	$(Q)python3 -B $(ROOT)/tests/join.py $(filter %.cu,$^) >$@
$(addsuffix .cu,$(UNOPTIMISED_PROGRAM)): $(BUILD)/flags/unoptimised
$(JOINED_PROGRAMS) $(UNOPTIMISED_PROGRAM): MADE_OF = $(call joined_sources,$@)
$(JOINED_PROGRAMS) $(UNOPTIMISED_PROGRAM): %: %.cu $(NVCC_MADE)
	$(build_cuda)
	$(Q)for name in $(basename $(notdir $(MADE_OF))); do ln -sf joined $(@D)/$$name; done

$(OUTSIDE_PROGRAMS): $$(wildcard $(ROOT)/emulator/tests/outside/$$(@F).c $(ROOT)/emulator/tests/outside/$$(@F).cu) $(NVCC_MADE)
	@mkdir -p $(@D)
	$(step) $(NVCC) -std=$(STANDARD) $(filter-out -l%,$(call outside_options,$<)) $(addprefix -Xcompiler ,$(subst $(comma),\\$(comma),$(SANITIZE))) \
	  -I$(ROOT)/common -o $@ $< $(COMMON_LIBRARY) $(filter -l%,$(call outside_options,$<))

$(LISTED_PROGRAMS:=.cu): $(BUILD)/%.cu: $(ROOT)/%.txt $(BUILD)/emulator/tests/alu_generate
	$(Q)$(BUILD)/emulator/tests/alu_generate $< >$@
# Optimising the host's stubs of so many kernels takes two thirds of the time.
$(LISTED_PROGRAMS): HOST_LEVEL := -O0
$(LISTED_PROGRAMS): NVCC_FLAGS += -I$(ROOT)/emulator/tests
$(LISTED_PROGRAMS): %: %.cu $(NVCC_MADE)
	$(build_cuda)

$(filter-out $(EMULATOR_C_TESTS),$(TEST_C_PROGRAMS)): $(BUILD)/%: $(ROOT)/%.c $(EMULATOR_MADE) $(BUILD)/flags/tests
	$(build_test)

-include $(addsuffix .d,$(UNOPTIMISED_PROGRAM) $(TEST_PROGRAMS) $(TEST_C_PROGRAMS))
