# steps.mk: what is rebuilt when a command has changed, and how far the build is.

# build/flags/NAME holds TEXT, and what depends on that file is rebuilt when TEXT has changed. The files are
# written while make reads this, which may have looked for them before.
remember = $(if $(call differ,$(strip $(file <$(BUILD)/flags/$(1))),$(strip $(2))),$(if $(ONLY_ASKED),\
  $(eval .PHONY: $(BUILD)/flags/$(1)),$(shell mkdir -p $(BUILD)/flags)$(file >$(BUILD)/flags/$(1),$(2))))
differ = $(or $(subst x$(1)x,,x$(2)x),$(subst x$(2)x,,x$(1)x))
CC_MADE := $(BUILD)/flags/cc
EMULATOR_MADE := $(BUILD)/flags/emulator
$(addprefix $(BUILD)/flags/,cc emulator nvcc tests unoptimised): ;
ifneq ($(COMPILING),)
$(call remember,cc,$(CC) $(CC_FLAGS) $(realpath $(CUDA)))
$(call remember,nvcc,$(NVCC_FLAGS) $(ARCHITECTURES) $(LATER_GPUS_CODE) $(LINK_PATHS) $(realpath $(CUDA)))
$(if $(WITH_MACHINE_CODE),$(call remember,machine_code,yes))
endif

# Each step is counted, and their number is found out first. What was counted is in a folder of this make
# alone, because two may run at once; those of makes that have ended are removed.
counted = $(ROOT)/common/make/step $(patsubst $(BUILD)/%,%,$@)
step = $(Q)$(counted)
ifeq ($(COMPILING),)
else ifeq ($(STEPS_TOTAL)$(ONLY_ASKED),)
export STEPS_TOTAL := $(shell env -u MAKELEVEL MAKEFLAGS=$(call quoted,n -- $(MAKEOVERRIDES)) \
  $(MAKE) CUDA_FOUND=$(CUDA) STEPS_TOTAL=1 $(GOALS) 2>/dev/null | grep -c 'common/make/step ')
export STEPS := $(BUILD)/progress/$(shell echo $$PPID)
$(shell cd $(BUILD)/progress 2>/dev/null && for make in *; do kill -0 $$make 2>/dev/null || rm -rf $$make; done; \
  rm -rf $(STEPS) && mkdir -p $(STEPS) && cd $(STEPS) && : >ended && : >shown.0 && date +%s >began)
endif
