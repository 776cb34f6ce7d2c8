# lessons.mk: the programs of the chapters: which there are, which of them are run, and how they are compiled.
CHAPTER_SOURCES := $(foreach c,$(ROOMS),$(wildcard $(ROOT)/$(c)/*.cu $(ROOT)/$(c)/pitfalls/*.cu))
program = $(patsubst $(ROOT)/%,$(BUILD)/%,$(basename $(1)))
# A program may ask for libraries of the toolkit in a line "// link: -lcublas"; where the toolkit has
# them not (the fetched one), that program is left out and said so.
LINKS := $(if $(CHAPTER_SOURCES),$(shell awk '/^\/\/ link: / { gsub(" ", ","); print FILENAME substr($$0, 9) }' $(CHAPTER_SOURCES)))
wanted_libraries = $(subst $(comma), ,$(patsubst $(1)%,%,$(filter $(1)$(comma)%,$(LINKS))))
lacks_libraries = $(if $(strip $(foreach l,$(filter-out -ldl,$(call wanted_libraries,$(1))),\
  $(if $(wildcard $(CUDA_LIBRARIES)/lib$(patsubst -l%,%,$(l)).so),,lacking))),$(1))
LEFT_OUT := $(strip $(foreach s,$(foreach l,$(LINKS),$(firstword $(subst $(comma), ,$(l)))),$(call lacks_libraries,$(s))))
ifneq ($(and $(LEFT_OUT),$(filter all check check-all bench,$(GOALS))),)
$(info left out: $(notdir $(LEFT_OUT)): libraries it links are not in $(CUDA))
endif
PROGRAMS := $(call program,$(filter-out $(LEFT_OUT),$(CHAPTER_SOURCES)))
# Three instructions exist for sm_90a and not for sm_90: tensormap.replace, wgmma and setmaxnreg. What has one of them is built for
# compute_90a, and everything else for compute_90. tests/later_gpus.bats asks ptxas whether this list is right.
HOPPER_ONLY := $(filter-out %/dependent_launch %/tile_counter,$(filter $(BUILD)/07_pipelined_gemm/%,$(PROGRAMS))) \
  $(filter $(addprefix $(BUILD)/02_tma_load/,replace_in_loop tensormap_replace paged_rows pitfalls/map_changed_without_fence) \
  $(BUILD)/03_tma_store/pitfalls/map_published_too_early,$(PROGRAMS))
# What measures is compiled by "all" and by bench; check-all has its own, built without optimising (tests.mk).
BENCH_PROGRAMS := $(foreach p,$(PROGRAMS),$(if $(filter bench_%,$(notdir $(p))),$(p)))
PITFALL_PROGRAMS := $(foreach p,$(PROGRAMS),$(if $(findstring /pitfalls/,$(p)),$(p)))
LESSON_PROGRAMS := $(filter-out $(BENCH_PROGRAMS) $(PITFALL_PROGRAMS),$(PROGRAMS))
# Its kernels for every layout take longest of all to compile, and only tests/layouts.bats runs them.
SLOW_LESSON := $(filter %/07_pipelined_gemm/library/layouts,$(LESSON_PROGRAMS))
# Each pitfall fixed by its .fix: exercises compare with it, and tests that it had only that one mistake.
FIXED_PROGRAMS := $(subst /pitfalls/,/fixed/,$(filter $(BUILD)/%,$(call program,\
  $(patsubst %.fix,%.cu,$(wildcard $(addprefix $(ROOT)/,$(addsuffix /pitfalls/*.fix,$(ROOMS))))))))
# 02_tma_load/tma_load, and in a chapter alone its rooms' main programs, too.
main_of = $(patsubst $(firstword $(subst _, ,$(1)))_%,%,$(1))
MAIN_PROGRAMS := $(foreach c,$(if $(WHOLE),$(CHAPTERS),$(ROOMS)),$(filter $(BUILD)/$(c)/$(call main_of,$(notdir $(c))),$(PROGRAMS)))
# PROGRAM=name runs other programs than the main ones: 02_tma_load/dimensions, or dimensions for those of all
# chapters.
programs_named = $(filter $(foreach folder,$(BUILD) $(addprefix $(BUILD)/,$(ROOMS)),\
  $(folder)/$(subst %,\%,$(1))),$(PROGRAMS))
RUN_PROGRAMS := $(if $(PROGRAM),$(foreach p,$(PROGRAM),$(call programs_named,$(p))),$(MAIN_PROGRAMS))
UNKNOWN_PROGRAM := $(firstword $(foreach p,$(PROGRAM),$(if $(call programs_named,$(p)),,$(p))))
ifneq ($(and $(filter run,$(GOALS)),$(UNKNOWN_PROGRAM)),)
# In the order of the chapter's Makefile, where that has lines "PROGRAMS_OF_...", and what is not in them last.
names_in_order = $(call chosen_first,$(shell sed -n 's/^PROGRAMS_OF_[A-Z]* := //p' $(ROOT)/$(1)/Makefile),$(notdir \
  $(filter-out $(PITFALL_PROGRAMS),$(filter $(BUILD)/$(1)/%,$(PROGRAMS)))))
chosen_first = $(foreach name,$(1),$(filter $(name),$(2))) $(filter-out $(1),$(2))
define unknown_program
PROGRAM is '$(UNKNOWN_PROGRAM)', but there is no such program; there are:
$() $(foreach c,$(CHAPTERS),$(c): $(strip $(call names_in_order,$(c)))
)and each pitfall NAME as pitfalls/NAME
endef
$(error $(unknown_program))
endif

# What takes longest is begun first, so that no processor is idle at the end.
LONGEST := %/layouts %/take/07/example %/take/all/example %/take/examples/joined %/unoptimised/joined %/bench_ladder %/bench_shapes %/wgmma_cases %/alu_cases
long_first = $(foreach longest,$(LONGEST),$(filter $(longest),$(1))) $(1)

NVCC_MADE := $(COMMON_LIBRARY) $(BUILD)/flags/nvcc $(if $(CROSS),$(BUILD)/cross/libcudart.so)
$(BUILD)/cross/libcudart.so: $(EMULATOR)
	@mkdir -p $(@D) && ln -sf ../emulator/libcudart.so.13 $@
define build_cuda
	$(make_folder)
	$(step) $(NVCC) $(NVCC_FLAGS) $(ARCHITECTURES) -I$(ROOT)/common -MMD -MP -MF $@.d -MT $@ -o $@ $< $(COMMON_LIBRARY) \
	  $(LINK_PATHS) $(foreach s,$(or $(MADE_OF),$<),$(call wanted_libraries,$(s)))
endef
$(filter-out $(HOPPER_ONLY),$(PROGRAMS)): ARCHITECTURES := $(LATER_GPUS_CODE)
$(PROGRAMS): $(BUILD)/%: $(ROOT)/%.cu $(NVCC_MADE)
	$(build_cuda)
# What the book's pages with something to turn record.
TURNED_PROGRAMS := $(call program,$(if $(WHOLE),$(wildcard $(ROOT)/common/book/*.cu)))
$(TURNED_PROGRAMS): $(BUILD)/%: $(ROOT)/%.cu $(NVCC_MADE)
	$(build_cuda)
$(FIXED_PROGRAMS) $(TURNED_PROGRAMS): ARCHITECTURES := $(EMULATED)
# "make build/02_tma_load/tma_load" builds that one program.
ifeq ($(CURDIR),$(ROOT))
build/%: $(BUILD)/% ;
endif

$(FIXED_PROGRAMS): $(BUILD)/%: $(BUILD)/%.cu $(NVCC_MADE)
	$(build_cuda)
.SECONDEXPANSION:
pitfall_file = $(subst $(BUILD)/,$(ROOT)/,$(subst /fixed/,/pitfalls/,$(1)))
$(FIXED_PROGRAMS:=.cu): %.cu: $$(call pitfall_file,%.cu) $$(call pitfall_file,%.fix)
	$(make_folder)
	$(Q)patch --silent -o $@ $< $(word 2,$^)
	$(Q)sed -i 's|#include "\.\./|#include "$(patsubst $(BUILD)/%,$(ROOT)/%,$(abspath $(@D)/..))/|' $@

-include $(addsuffix .d,$(PROGRAMS) $(FIXED_PROGRAMS) $(TURNED_PROGRAMS))
