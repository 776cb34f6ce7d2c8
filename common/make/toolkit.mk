# toolkit.mk: the compilers, and how they are called. Only goals that compile look for them.
ifneq ($(COMPILING),)
ifneq ($(if $(ONLY_ASKED)$(wildcard $(BUILD)/flags),,$(shell mkdir -p $(BUILD)/flags 2>/dev/null || echo no)),)
$(error programs are built in $(BUILD), but that folder cannot be written: make it writable for \
$(shell id -un), or copy everything to a disk that is neither read-only nor full)
endif
# Looked for once: again when something of what it depends on is another, or the toolkit is gone.
TOOLKIT_KEY := $(strip $(CC) $(CUDA_HOME) $(PATH) $(filter check% tests exercise% watch% take%,$(COMPILING)) \
  $(wildcard $(or $(NVIDIA_DRIVER),/proc/driver/nvidia /dev/nvidiactl /dev/dxg)) \
  $(file <$(ROOT)/common/make/toolkit-requirements.txt))
TOOLKIT_FOUND := $(file <$(BUILD)/flags/toolkit)
CUDA := $(strip $(if $(call differ,$(TOOLKIT_KEY),$(wordlist 2,$(words $(TOOLKIT_FOUND)),$(TOOLKIT_FOUND))),,\
  $(patsubst %/bin/nvcc,%,$(wildcard $(firstword $(TOOLKIT_FOUND))/bin/nvcc))))
ifeq ($(CUDA),)
CUDA := $(shell CUDA_HOME=$(call quoted,$(CUDA_HOME)) CC=$(call quoted,$(CC)) \
  $(ROOT)/common/make/find-toolkit $(BUILD) $(COMPILING))
$(if $(CUDA)$(ONLY_ASKED),$(if $(ONLY_ASKED),,$(file >$(BUILD)/flags/toolkit,$(CUDA) $(TOOLKIT_KEY))))
endif
ifeq ($(CUDA),)
$(error something that the build needs is missing; the message above says what to type)
endif
export CUDA_LIBRARIES := $(firstword $(wildcard $(CUDA)/lib64 $(CUDA)/lib))
endif
export NVCC := $(CUDA)/bin/nvcc

# With CC=aarch64-linux-gnu-gcc on x86-64: nvcc looks for headers and a runtime of that processor in a folder which only
# some toolkits have. The headers are the same, and programs are linked with the emulator.
CROSS := $(if $(ARM),$(filter-out aarch64,$(shell uname -m)))
CROSS_FLAGS := $(if $(CROSS),-ccbin $(subst gcc,g++,$(subst clang,clang++,$(CC))) -I$(CUDA)/include -cudadevrt none)

# The PTX that the emulator reads, not compressed so that it needs no zstd.
# (-arch=sm_90a would also run a plain sm_90 pass, which refuses wgmma.)
EMULATED := -gencode arch=compute_90a,code=compute_90a
MACHINE_CODE := -gencode arch=compute_90a,code=sm_90a
# Lessons also get machine code for the H200 where there is a driver, and for check-all, which compiles everything
# that anybody would. Once asked for it stays, so that the next make does not build all of them again.
WITH_MACHINE_CODE := $(or $(filter gpu,$(DEVICE)),$(filter check-all%,$(GOALS)),$(wildcard $(BUILD)/flags/machine_code),\
  $(firstword $(wildcard $(or $(NVIDIA_DRIVER),/proc/driver/nvidia /dev/nvidiactl /dev/dxg))))
LESSON_CODE := $(if $(WITH_MACHINE_CODE),$(MACHINE_CODE)) $(EMULATED)
# For compute_90 without the a: PTX that a driver also translates for the GPUs after Hopper. The machine code for
# Hopper is the same, but ptxas would say of every multicast that it may be slow on others.
LATER_GPUS_CODE := $(if $(WITH_MACHINE_CODE),-gencode arch=compute_90$(comma)code=sm_90) \
  -gencode arch=compute_90,code=compute_90 -Xptxas -suppress-async-bulk-multicast-advisory-warning
ARCHITECTURES := $(LESSON_CODE)
# C++14: from C++17 on the toolkit's headers are twice as long to compile, and nothing here needs it.
STANDARD := c++14
HOST_LEVEL := -O3
NVCC_FLAGS = -std=$(STANDARD) $(HOST_LEVEL) -lineinfo --no-compress -cudart shared $(CROSS_FLAGS) \
  $(if $(filter 1,$(WERROR)),-Werror all-warnings) \
  $(addprefix -Xcompiler ,$(WARNINGS) $(HOST_FLAGS) -Wno-missing-field-initializers \
  $(subst $(comma),\\$(comma),$(SANITIZE)))
# Run by hand a program finds the runtime of the toolkit, or the emulator where there is no Hopper:
# build/device leads there then.
LINK_PATHS := -Xlinker -rpath=$(BUILD)/device -Xlinker -rpath=$(CUDA_LIBRARIES) \
  $(if $(CROSS),-L$(BUILD)/cross)
ifneq ($(COMPILING),)
$(call remember,cc,$(CC) $(CC_FLAGS) $(realpath $(CUDA)))
$(call remember,nvcc,$(NVCC_FLAGS) $(ARCHITECTURES) $(LATER_GPUS_CODE) $(LINK_PATHS) $(realpath $(CUDA)))
$(if $(WITH_MACHINE_CODE),$(call remember,machine_code,yes))
endif
