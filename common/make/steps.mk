# steps.mk: how C is compiled, what is rebuilt when a command has changed, and what is said of a step. The emulator's
# Makefile includes this, too.

CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
# A newer compiler's new warnings must not stop a reader: only WERROR=1 makes errors of them.
WARNINGS := -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror)
# What is compiled for: ARM is aarch64, or empty for x86-64. Compilers for ARM round a * b + c once, unless told
# otherwise, and their char has no sign: a lesson could print other digits.
ARM := $(if $(COMPILING),$(if $(filter aarch64-%,$(shell $(CC) -dumpmachine 2>/dev/null)),aarch64))
HOST_FLAGS := $(if $(ARM),-ffp-contract=off -fsigned-char)
CC_FLAGS = -std=c11 -D_GNU_SOURCE -O2 -g $(WARNINGS) $(HOST_FLAGS) -Wmissing-prototypes -fPIC \
  -isystem $(CUDA)/include $(SANITIZE)

# build/flags/NAME holds TEXT, and what depends on that file is rebuilt when TEXT has changed. The files are
# written while make reads this, which may have looked for them before: that starts no program, and make -n and -q stay
# right. A recipe that compares would start two for each file, and make -q would call everything out of date.
remember = $(if $(call differ,$(strip $(file <$(BUILD)/flags/$(1))),$(strip $(2))),$(if $(ONLY_ASKED),\
  $(eval .PHONY: $(BUILD)/flags/$(1)),$(file >$(BUILD)/flags/$(1),$(2))))
differ = $(or $(subst x$(1)x,,x$(2)x),$(subst x$(2)x,,x$(1)x))
CC_MADE := $(BUILD)/flags/cc
EMULATOR_MADE := $(BUILD)/flags/emulator
$(addprefix $(BUILD)/flags/,cc emulator nvcc tests unoptimised): ;
# Each step names what it makes. With V=1 its command is shown instead, and make -s is silent.
step = $(Q)$(if $(filter 1,$(V))$(SILENT),,echo '  $(patsubst $(BUILD)/%,%,$@)' >&2; )
