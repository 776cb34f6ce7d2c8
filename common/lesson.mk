# lesson.mk: the one set of rules. Included at the root it serves all chapters, included by a
# chapter's Makefile that chapter alone; the goals are the same.
#
#   DEVICE=gpu|emulator   where programs run; default: a Hopper GPU if there is one
#   CUDA_HOME=...         the CUDA Toolkit; default: PATH, /usr/local/cuda, else it is fetched
#   SANITIZE="..."        flags such as -fsanitize=address, for all host code; first: make clean
#   V=1                   show the commands

ROOT := $(patsubst %/common/lesson.mk,%,$(abspath $(lastword $(MAKEFILE_LIST))))
BUILD := $(ROOT)/build
CHAPTERS := $(strip $(if $(filter $(ROOT),$(CURDIR)),\
  $(notdir $(wildcard $(ROOT)/[0-9][0-9]_*)),$(notdir $(CURDIR))))
Q := $(if $(filter 1,$(V)),,@)
SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules
# All cores, unless the caller has said how many; a make within a make shares the outer one's.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

ifneq ($(filter-out 0 1,$(V)),)
$(error V is '$(V)', but must be 0 or 1 (1 shows the commands))
endif
ifneq ($(filter-out gpu emulator,$(DEVICE)),)
$(error DEVICE is '$(DEVICE)', but must be gpu or emulator (or not set: a Hopper GPU if there is one))
endif
export DEVICE

# ---- The toolkit: only goals that compile look for it ----
GOALS := $(or $(MAKECMDGOALS),all)
ifneq ($(filter-out help clean figures format hint hint-%,$(GOALS)),)
CUDA := $(shell CUDA_HOME='$(CUDA_HOME)' $(ROOT)/common/find-toolkit $(BUILD))
ifeq ($(CUDA),)
$(error no CUDA Toolkit to build with; the message above says what to type)
endif
export CUDA_LIBRARIES := $(firstword $(wildcard $(CUDA)/lib64 $(CUDA)/lib))
endif
export NVCC := $(CUDA)/bin/nvcc
comma := ,

# SASS for the H200, and the PTX that the emulator reads, not compressed so that it needs no zstd.
# (-arch=sm_90a would also run a plain sm_90 pass, which refuses wgmma.)
EMULATED := -gencode arch=compute_90a,code=compute_90a
ARCHITECTURES := -gencode arch=compute_90a,code=sm_90a $(EMULATED)
# C++14: from C++17 on the toolkit's headers are twice as long to compile, and nothing here needs it.
STANDARD := c++14
NVCC_FLAGS = -std=$(STANDARD) -O3 -lineinfo --no-compress -cudart shared \
  -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wno-missing-field-initializers,-Werror \
  $(addprefix -Xcompiler ,$(subst $(comma),\\$(comma),$(SANITIZE)))
CC_FLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -fPIC -isystem $(CUDA)/include \
  $(SANITIZE)
# fp-contract: a contracted multiply-add would round once where the emulated instruction rounds twice.
EMULATOR_FLAGS := $(CC_FLAGS) -O3 -march=native -fno-math-errno -ffp-contract=off \
  -fno-strict-aliasing -fno-semantic-interposition -pthread -I$(ROOT)/common/emulator -I$(ROOT)/common

# ---- What there is to build ----
CHAPTER_SOURCES := $(foreach c,$(CHAPTERS),$(wildcard $(ROOT)/$(c)/*.cu $(ROOT)/$(c)/pitfalls/*.cu))
# At the root all tests; in a chapter its own.
TESTED := $(if $(filter $(ROOT),$(CURDIR)),*,$(CHAPTERS))
TEST_SOURCES := $(wildcard $(ROOT)/tests/$(TESTED)/*.cu)
TEST_C_SOURCES := $(wildcard $(ROOT)/tests/$(TESTED)/*.c)
program = $(patsubst $(ROOT)/%,$(BUILD)/%,$(basename $(1)))
# A program may ask for libraries of the toolkit in a line "// link: -lcublas"; where the toolkit has
# them not (the fetched one), that program is left out and said so.
LINKING_SOURCES := $(if $(CHAPTER_SOURCES),$(shell grep -l '^// link: ' $(CHAPTER_SOURCES)))
wanted_libraries = $(if $(filter $(1),$(LINKING_SOURCES)),$(shell sed -n 's|^// link: ||p' $(1)))
lacks_libraries = $(if $(strip $(foreach l,$(call wanted_libraries,$(1)),\
  $(if $(wildcard $(CUDA_LIBRARIES)/lib$(patsubst -l%,%,$(l)).so),,lacking))),$(1))
LEFT_OUT := $(foreach s,$(LINKING_SOURCES),$(call lacks_libraries,$(s)))
ifneq ($(and $(LEFT_OUT),$(filter all check bench,$(GOALS))),)
$(info left out: $(notdir $(LEFT_OUT)): libraries it links are not in $(CUDA))
endif
PROGRAMS := $(call program,$(filter-out $(LEFT_OUT),$(CHAPTER_SOURCES)))
FIXED_PROGRAMS := $(subst /pitfalls/,/fixed/,$(filter $(BUILD)/%,$(call program,\
  $(patsubst %.fix,%.cu,$(wildcard $(addprefix $(ROOT)/,$(addsuffix /pitfalls/*.fix,$(CHAPTERS))))))))
# Relocatable device code: several files to one program.
LINKED_SOURCES := $(wildcard $(ROOT)/tests/$(TESTED)/linked/*.cu)
LINKED_PROGRAM := $(if $(LINKED_SOURCES),$(BUILD)/tests/emulator/linked/linked)
TEST_PROGRAMS := $(call program,$(TEST_SOURCES)) $(FIXED_PROGRAMS) $(LINKED_PROGRAM)
TEST_C_PROGRAMS := $(call program,$(TEST_C_SOURCES))
MAIN_PROGRAMS := $(foreach c,$(CHAPTERS),\
  $(filter $(BUILD)/$(c)/$(shell sed 's/^[0-9]*_//' <<<$(c)),$(PROGRAMS)))

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
EMULATOR := $(BUILD)/emulator/libcudart.so.13 $(BUILD)/emulator/libcuda.so.1
FIND_DEVICE := $(BUILD)/common/find-device
SUPPORT := $(TENSOR_MAP_COMMAND) $(FIND_DEVICE) $(EMULATOR)

.PHONY: all run check bench bench-emulator figures format clean help emulator tests pitfalls
.PHONY: exercise hint rooms
.DEFAULT_GOAL := all

all: $(PROGRAMS) $(SUPPORT) ## build everything (of this chapter)

run: $(MAIN_PROGRAMS) $(SUPPORT) ## build and run the main program of every chapter, in order
	@$(ROOT)/common/run-chapters $(if $(PROGRAM),$(addprefix $(BUILD)/$(CHAPTERS)/,$(PROGRAM)),$(MAIN_PROGRAMS))

check: all tests ## build and test everything; the last line is "N passed, N failed, N skipped"
	@$(ROOT)/common/check-chapters $(wildcard $(ROOT)/tests/$(TESTED).bats)

tests: $(TEST_PROGRAMS) $(TEST_C_PROGRAMS)

bench: all ## measure on the GPU: tables and CSV files under build/ (without a GPU it says so)
	@$(ROOT)/common/bench-chapters $(CHAPTERS)

bench-emulator: $(addprefix $(BUILD)/tests/emulator/,bench bench_engines bench_checks) $(EMULATOR) ## measure how fast the emulator itself is
	@$(BUILD)/tests/emulator/bench
	@for threads in 1 $$(nproc); do echo "$$threads host threads:"; EMULATOR_THREADS=$$threads \
	  $(ROOT)/common/emulator/emulate $(BUILD)/tests/emulator/bench_engines | sed '1d;$$d'; done
	@echo "What the checks cost:"; $(ROOT)/tests/emulator/bench_checks.sh $(BUILD)/tests/emulator/bench_checks

figures: ## write the measured tables and pictures into the READMEs
	@python3 $(ROOT)/common/figures.py $(addprefix $(ROOT)/,$(CHAPTERS))

pitfalls: all ## run every mistake of the chapters and show what is reported
	@$(ROOT)/common/show-pitfalls $(CHAPTERS)

exercise: all ## copy a pitfall to build/exercises/ to be mended, or say whether it is mended
	@$(ROOT)/common/exercise start $(CHAPTERS)

hint: ## one more hint for the exercise
	@$(ROOT)/common/exercise hint $(CHAPTERS)

emulator: $(EMULATOR) ## build the emulator alone

rooms: $(EMULATOR) ## draw which folder of the emulator calls which, into its README
	@$(ROOT)/common/emulator/rooms draw

format: ## lay out all C and CUDA sources with clang-format
	@command -v clang-format >/dev/null || { echo "clang-format is not installed; on Debian: apt-get install clang-format" >&2; exit 2; }
	$(Q)cd $(ROOT) && git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

clean: ## remove what was built (not a fetched toolkit)
	$(Q)rm -rf $(if $(filter $(ROOT),$(CURDIR)),\
	  $(filter-out $(BUILD)/cuda $(BUILD)/bats,$(wildcard $(BUILD)/*)),$(addprefix $(BUILD)/,$(CHAPTERS)))

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## /\1\t/p' $(ROOT)/common/lesson.mk | \
	  while IFS=$$'\t' read -r goal text; do printf '  make %-16s %s\n' "$$goal" "$$text"; done
	@printf '  make %-16s %s\n' 'run-02' 'run, check, bench, pitfalls, exercise and hint also take a chapter'
	@sed -n 's/^#   /  /p' $(ROOT)/common/lesson.mk

# run-02, check-02 and so on: the goal of that chapter alone.
ifeq ($(CURDIR),$(ROOT))
define chapter_goal
$(1)-%:
	@chapter=$$$$(cd $(ROOT) && ls -d $$*_* 2>/dev/null | head -n 1); \
	if [ -z "$$$$chapter" ]; then \
	  echo "there is no chapter '$$*'; the chapters are: $(CHAPTERS)" >&2; exit 2; fi; \
	$$(MAKE) --no-print-directory -C $(ROOT)/$$$$chapter $(1)
endef
$(foreach goal,run check bench pitfalls exercise hint,$(eval $(call chapter_goal,$(goal))))
endif

# ---- How it is built ----
say = @$(if $(filter 1,$(V)),,echo "  $(1) $(patsubst $(ROOT)/%,%,$@)")

$(BUILD)/common/%.o: $(ROOT)/common/%.c $(ROOT)/common/lesson.mk
	@mkdir -p $(@D)
	$(call say,cc  )
	$(Q)$(CC) $(CC_FLAGS) -MMD -MP -c $< -o $@

$(COMMON_LIBRARY): $(COMMON_OBJECTS)
	$(call say,ar  )
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/common/tensor-map: $(BUILD)/common/tensor_map_command.o $(filter $(BUILD)/common/tensor_map%,$(COMMON_OBJECTS))
	$(call say,link)
	$(Q)$(CC) $(SANITIZE) -o $@ $(filter-out %/tensor_map_encode.o,$^) -lm

$(FIND_DEVICE): $(BUILD)/common/find_device.o
	$(call say,link)
	$(Q)$(CC) $(SANITIZE) -o $@ $^ -ldl

# Run by hand a program finds the runtime of the toolkit, or the emulator where there is no Hopper:
# build/device holds a link to it then.
LINK_PATHS := -Xlinker -rpath=$(BUILD)/device -Xlinker -rpath=$(CUDA_LIBRARIES)
define build_cuda
	@mkdir -p $(@D)
	$(call say,nvcc)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(ARCHITECTURES) -I$(ROOT)/common -MMD -MP -MF $@.d -MT $@ -o $@ $< $(COMMON_LIBRARY) \
	  $(LINK_PATHS) $(call wanted_libraries,$<)
endef
$(PROGRAMS): $(BUILD)/%: $(ROOT)/%.cu $(COMMON_LIBRARY) $(ROOT)/common/lesson.mk
	$(build_cuda)
# Tests hold PTX alone: it halves their compilation, and on a GPU the driver compiles it.
$(TEST_PROGRAMS): ARCHITECTURES := $(EMULATED)
# libcu++ asks for C++17.
$(BUILD)/tests/emulator/foreign_barriers: STANDARD := c++17
$(call program,$(TEST_SOURCES)): $(BUILD)/%: $(ROOT)/%.cu $(COMMON_LIBRARY) $(ROOT)/common/lesson.mk
	$(build_cuda)

$(LINKED_PROGRAM): $(LINKED_SOURCES) $(ROOT)/common/lesson.mk
	@mkdir -p $(@D)
	$(call say,nvcc)
	$(Q)$(NVCC) $(NVCC_FLAGS) -rdc=true $(ARCHITECTURES) -o $@ $(LINKED_SOURCES) $(LINK_PATHS)

# "make build/02_tma_load/tma_load" builds that one program.
ifeq ($(CURDIR),$(ROOT))
build/%: $(BUILD)/% ;
endif

# Each pitfall mended by its .fix, for the test that it has that one mistake only.
$(FIXED_PROGRAMS): $(BUILD)/%: $(BUILD)/%.cu $(COMMON_LIBRARY) $(ROOT)/common/lesson.mk
	$(build_cuda)
.SECONDEXPANSION:
pitfall_file = $(subst $(BUILD)/,$(ROOT)/,$(subst /fixed/,/pitfalls/,$(1)))
$(FIXED_PROGRAMS:=.cu): %.cu: $$(call pitfall_file,%.cu) $$(call pitfall_file,%.fix)
	@mkdir -p $(@D)
	$(Q)patch --silent -o $@ $< $(word 2,$^)
	$(Q)sed -i 's|#include "\.\./|#include "$(patsubst $(BUILD)/%,$(ROOT)/%,$(abspath $(@D)/..))/|' $@

# What a reader mends.
$(BUILD)/exercises/%: $(BUILD)/exercises/%.cu $(COMMON_LIBRARY)
	$(build_cuda)

$(BUILD)/emulator/objects/%.o: $(ROOT)/common/%.c $(ROOT)/common/lesson.mk
	@mkdir -p $(@D)
	$(call say,cc  )
	$(Q)$(CC) $(EMULATOR_FLAGS) -MMD -MP -c $< -o $@

# The version script gives the symbols the version node that executables ask for, and exports
# nothing but CUDA's own names.
$(BUILD)/emulator/libcudart.so.13: $(EMULATOR_OBJECTS) $(ROOT)/common/emulator/exports.map
	$(call say,link)
	$(Q)$(CC) -shared $(SANITIZE) -o $@.new.$$$$ -Wl,-soname,libcudart.so.13 \
	  -Wl,--version-script=$(ROOT)/common/emulator/exports.map -Wl,-z,defs $(EMULATOR_OBJECTS) \
	  -pthread -ldl -lm && mv $@.new.$$$$ $@
$(BUILD)/emulator/libcuda.so.1: $(BUILD)/emulator/libcudart.so.13
	$(Q)ln -sf libcudart.so.13 $@

$(TEST_C_PROGRAMS): $(BUILD)/%: $(ROOT)/%.c $(EMULATOR_OBJECTS) $(ROOT)/common/lesson.mk
	@mkdir -p $(@D)
	$(call say,cc  )
	$(Q)$(CC) $(EMULATOR_FLAGS) -MMD -MP -MF $@.d -MT $@ \
	  -o $@ $< $(EMULATOR_OBJECTS) -pthread -ldl -lm

-include $(COMMON_OBJECTS:.o=.d) $(BUILD)/common/tensor_map_command.d $(EMULATOR_OBJECTS:.o=.d)
-include $(addsuffix .d,$(PROGRAMS) $(TEST_PROGRAMS) $(TEST_C_PROGRAMS))
