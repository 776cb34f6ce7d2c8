# steps.mk: what is rebuilt when a command has changed, and what is said of a step.

# build/flags/NAME holds TEXT, and what depends on that file is rebuilt when TEXT has changed. The files are
# written while make reads this, which may have looked for them before.
remember = $(if $(call differ,$(strip $(file <$(BUILD)/flags/$(1))),$(strip $(2))),$(if $(ONLY_ASKED),\
  $(eval .PHONY: $(BUILD)/flags/$(1)),$(file >$(BUILD)/flags/$(1),$(2))))
CC_MADE := $(BUILD)/flags/cc
EMULATOR_MADE := $(BUILD)/flags/emulator
$(addprefix $(BUILD)/flags/,cc emulator nvcc tests unoptimised): ;
ifneq ($(COMPILING),)
$(call remember,cc,$(CC) $(CC_FLAGS) $(realpath $(CUDA)))
$(call remember,nvcc,$(NVCC_FLAGS) $(ARCHITECTURES) $(LATER_GPUS_CODE) $(LINK_PATHS) $(realpath $(CUDA)))
$(if $(WITH_MACHINE_CODE),$(call remember,machine_code,yes))
endif

# Each step names what it makes. With V=1 its command is shown instead, and make -s is silent.
step = $(Q)$(if $(filter 1,$(V))$(SILENT),,echo '  $(patsubst $(BUILD)/%,%,$@)' >&2; )
