# exercises.mk: what a reader writes or repairs, and what it is compared with.

# Exercises to write: skeletons, their solutions, and a judge for each chapter.
EXERCISE_SOURCES := $(wildcard $(addprefix $(ROOT)/,$(addsuffix /exercises/*.cu,$(ROOMS))))
SKELETONS := $(addsuffix .ptx,$(call program,$(EXERCISE_SOURCES)))
SOLUTIONS := $(SKELETONS:.ptx=.solved.ptx)
JUDGES := $(call program,$(wildcard $(addprefix $(ROOT)/,$(addsuffix /exercises/judge.c,$(CHAPTERS)))))

# What a reader repairs. Exercises are judged on the emulator, which needs only PTX.
EXERCISES ?= $(BUILD)/exercises
$(EXERCISES)/%: NVCC_FLAGS += -I$(ROOT)
$(EXERCISES)/%: ARCHITECTURES := $(EMULATED)
$(EXERCISES)/%: $(EXERCISES)/%.cu $(NVCC_MADE)
	$(build_cuda)

# What a reader writes: PTX alone, which the chapter's judge loads. The gap leaves things unused.
define build_ptx
	$(make_folder)
	$(step) $(NVCC) -std=$(STANDARD) -O3 -lineinfo -arch=compute_90a -ptx -diag-suppress 177,550 \
	  -I$(ROOT) -I$(ROOT)/common -I$(<D) $(1) -MMD -MP -MF $@.d -MT $@ -o $@ $<
endef
$(EXERCISES)/%.ptx: $(EXERCISES)/%.cu
	$(build_ptx)
$(SKELETONS): $(BUILD)/%.ptx: $(ROOT)/%.cu
	$(build_ptx)
$(SOLUTIONS:.ptx=.cu): $(BUILD)/%.solved.cu: $(ROOT)/%.cu $(ROOT)/%.solution
	$(make_folder)
	$(Q)patch --silent -o $@ $< $(word 2,$^)
$(SOLUTIONS): %.ptx: %.cu
	$(call build_ptx,-I$(patsubst $(BUILD)/%,$(ROOT)/%,$(<D)))
$(JUDGES): $(BUILD)/%: $(ROOT)/%.c $(BUILD)/common/exercises/judge.o $(NVCC_MADE) $(CC_MADE)
	$(make_folder)
	$(step) $(CC) $(CC_FLAGS) -I$(ROOT)/common/exercises -MMD -MP -MF $@.d -MT $@.o -c $< -o $@.o
	$(Q)$(NVCC) -cudart shared $(CROSS_FLAGS) $(addprefix -Xcompiler ,$(subst $(comma),\\$(comma),$(SANITIZE))) -o $@ $@.o $(BUILD)/common/exercises/judge.o $(COMMON_LIBRARY) $(LINK_PATHS)

-include $(addsuffix .d,$(SKELETONS) $(SOLUTIONS) $(JUDGES))
