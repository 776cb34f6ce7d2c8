# emulator.mk: included by emulator/Makefile and by the lessons'. The emulator's library for this machine, build/emulator/, and one for every processor since 2009
# (x86-64-v2), build/emulator/portable/, which check-all builds, emulator-portable, and emulate where it is needed.
# On ARM both are for every 64-bit processor.

# What the best level of instructions needs that this processor has.
CPU := $(if $(COMPILING),$(file </proc/cpuinfo))
has_all_of = $(if $(filter-out $(CPU),$(1)),,$(1))
NEEDED_x86-64-v3 := avx2 bmi1 bmi2 f16c fma abm movbe
NEEDED_x86-64-v4 := avx512f avx512bw avx512cd avx512dq avx512vl
LEVELS := $(if $(ARM),armv8-a,x86-64-v2 x86-64-v3 x86-64-v4)
LOWEST_LEVEL := $(firstword $(LEVELS))
ifneq ($(filter-out $(LEVELS),$(ARCH))$(word 2,$(ARCH)),)
$(error ARCH is '$(ARCH)', but must be among $(LEVELS) (or not set: what this processor has))
endif
PROCESSOR := $(if $(ARCH)$(ARM),$(NEEDED_$(ARCH)),$(or $(call has_all_of,$(NEEDED_x86-64-v4)),$(call has_all_of,$(NEEDED_x86-64-v3))))
LEVEL := $(if $(PROCESSOR),$(if $(filter avx2,$(PROCESSOR)),x86-64-v3,x86-64-v4),$(LOWEST_LEVEL))
FLAGS_armv8-a := -march=armv8-a
# By their parts: the names of the levels are newer than the compilers of some machines.
FLAGS_x86-64-v2 := -mssse3 -msse4.1 -msse4.2 -mpopcnt -mcx16 -msahf
# Tuned for no processor in particular, gcc copies a warp's 128 bytes by "rep movs", whose start alone takes longer.
FLAGS_x86-64-v3 := $(FLAGS_x86-64-v2) -mavx -mavx2 -mbmi -mbmi2 -mf16c -mfma -mlzcnt -mmovbe -mtune=skylake
FLAGS_x86-64-v4 := $(FLAGS_x86-64-v3) -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl -mtune=skylake-avx512
# fp-contract: a contracted multiply-add would round once where the emulated instruction rounds twice.
# psabi: gcc notes that inline functions with vectors are passed otherwise than in gcc 4.5.
# -g1: lines without variables, in three quarters of the time.
EMULATOR_FLAGS := $(CC_FLAGS) -g1 -Wno-psabi -fno-math-errno -ffp-contract=off \
  -fno-strict-aliasing -fno-semantic-interposition -pthread -I$(ROOT)/emulator -I$(ROOT)/common $(CFLAGS)

# The emulator encodes tensor maps with the very files that the lessons use; the one that asks the
# driver is not among them.
EMULATOR_SOURCES := $(filter-out $(ROOT)/emulator/tests/%,$(wildcard $(addprefix $(ROOT)/emulator/,*/*.c */*/*.c))) \
  $(filter-out %/tensor_map_encode.c,$(wildcard $(ROOT)/common/tensor_map*.c))
EMULATOR_OBJECTS := $(patsubst $(ROOT)/%.c,$(BUILD)/objects/%.o,$(EMULATOR_SOURCES))
# What runs once a program or a launch is not faster for being optimised, and is the same in both libraries.
ONCE_OBJECTS := $(filter $(foreach f,ptx load record runtime,$(BUILD)/objects/emulator/$(f)/%) \
  $(BUILD)/objects/common/%,$(EMULATOR_OBJECTS))
PORTABLE_OBJECTS := $(ONCE_OBJECTS) $(patsubst $(BUILD)/objects/%,$(BUILD)/objects/portable/%,\
  $(filter-out $(ONCE_OBJECTS),$(EMULATOR_OBJECTS)))
# The other names under which it is loaded.
EMULATOR_NAMES := libcuda.so.1 libnvidia-ml.so.1 libcute_dsl_runtime.so
EMULATOR := $(addprefix $(BUILD)/emulator/,libcudart.so.13 $(EMULATOR_NAMES))
PORTABLE_EMULATOR := $(addprefix $(BUILD)/emulator/portable/,libcudart.so.13 $(EMULATOR_NAMES))
# Like the emulator, but for the sources ASSERTED, which execute all their assertions (tests/asserted.bats).
ASSERTED_OBJECTS := $(patsubst $(ROOT)/%.c,$(BUILD)/objects/asserted/%.o,$(addprefix $(ROOT)/,$(ASSERTED)))
ASSERTED_EMULATOR := $(BUILD)/emulator/asserted/libcudart.so.13

# -Bsymbolic: its calls of CUDA's functions are its own, whatever other copy of CUDA a program has loaded.
LINK_EMULATOR = -shared $(SANITIZE) $(LDFLAGS) -Wl,-soname,libcudart.so.13 -Wl,-z,defs -Wl,-Bsymbolic \
  -Wl,--version-script=$(ROOT)/emulator/exports.map
ifneq ($(COMPILING),)
$(call remember,emulator,$(CC) $(EMULATOR_FLAGS) $(FLAGS_$(LEVEL)) $(LINK_EMULATOR) $(realpath $(CUDA)))
endif

# Programs wait for the common library. The emulator does too: else make would begin all of it before the first of them.
$(sort $(EMULATOR_OBJECTS) $(PORTABLE_OBJECTS)): | $(COMMON_LIBRARY)
OBJECT_LEVEL := -O3 $(FLAGS_$(LEVEL))
# -O3 makes these no faster. events.c alone takes it six times as long to compile: it copies each loop over subscribers.
$(filter $(addprefix $(BUILD)/objects/emulator/,base/events.o explore/% clock/%),$(EMULATOR_OBJECTS)): \
  OBJECT_LEVEL := -O2 $(FLAGS_$(LEVEL))
# -O1 keeps every call on the stack, where runtime/wild_pointers.c finds its name.
$(ONCE_OBJECTS): OBJECT_LEVEL := -O1 $(FLAGS_$(LOWEST_LEVEL))
define build_object
	$(step)[ -d $(@D) ] || mkdir -p $(@D); exec $(CC) $(EMULATOR_FLAGS) $(OBJECT_LEVEL) -MMD -MP -MT $@ -c $< -o $@
endef
# The portable ones are compiled in less than half the time: -O1. And of what other processors compile, not of the lines
# for SSE, so that tests on x86-64 run it (tests/portable.bats).
PORTABLE_LEVEL := -O1 $(FLAGS_$(LOWEST_LEVEL)) -U__SSE2__
$(BUILD)/objects/portable/%.o: OBJECT_LEVEL := $(PORTABLE_LEVEL)
$(BUILD)/objects/portable/%.o: $(ROOT)/%.c $(EMULATOR_MADE)
	$(build_object)
$(ASSERTED_OBJECTS): OBJECT_LEVEL += -DEMULATOR_ASSERT
$(ASSERTED_OBJECTS): $(BUILD)/objects/asserted/%.o: $(ROOT)/%.c $(EMULATOR_MADE)
	$(build_object)
$(BUILD)/objects/%.o: $(ROOT)/%.c $(EMULATOR_MADE)
	$(build_object)

# The version script gives the symbols the version node that executables ask for, and exports
# nothing but CUDA's own names. The file "processor" says what the library needs: emulate reads it.
$(BUILD)/emulator/libcudart.so.13: $(EMULATOR_OBJECTS)
$(BUILD)/emulator/portable/libcudart.so.13: $(PORTABLE_OBJECTS)
$(ASSERTED_EMULATOR): $(filter-out $(ASSERTED_OBJECTS:$(BUILD)/objects/asserted/%=$(BUILD)/objects/%),$(EMULATOR_OBJECTS)) \
  $(ASSERTED_OBJECTS)
$(filter %/libcudart.so.13,$(EMULATOR) $(PORTABLE_EMULATOR) $(ASSERTED_EMULATOR)): $(ROOT)/emulator/exports.map
	@[ -d $(@D) ] || mkdir -p $(@D)
	$(step)new=$@.new.$$$$; $(CC) $(LINK_EMULATOR) -o $$new $(filter %.o,$^) -pthread -ldl -lm && \
	  echo '$(or $(ARM),$(if $(findstring /portable/,$@),,$(PROCESSOR)))' >$(@D)/processor && mv $$new $@
define link_to_emulator
$(filter %/$(1),$(EMULATOR) $(PORTABLE_EMULATOR)): %/$(1): %/libcudart.so.13
	$$(Q)ln -sf libcudart.so.13 $$@
endef
$(foreach name,$(EMULATOR_NAMES),$(eval $(call link_to_emulator,$(name))))

# Tests in C may call the emulator's functions.
EMULATOR_C_TESTS := $(patsubst $(ROOT)/%.c,$(BUILD)/%,$(wildcard $(ROOT)/emulator/tests/*.c))
define build_test
	@mkdir -p $(@D)
	$(step) $(CC) $(EMULATOR_FLAGS) $(if $(filter %/bench,$@),-O3,-O1) $(FLAGS_$(LEVEL)) \
	  -MMD -MP -MF $@.d -MT $@ -o $@ $< $(filter %.o,$^) -pthread -ldl -lm
endef
$(filter-out %/alu_generate %/observed,$(EMULATOR_C_TESTS)): $(EMULATOR_OBJECTS)
# The machine without those who watch: if it called one of them, this would not link.
$(BUILD)/emulator/tests/observed: $(filter-out $(foreach f,checker clock explore record trial,\
  $(BUILD)/objects/emulator/$(f)/%),$(EMULATOR_OBJECTS))
$(EMULATOR_C_TESTS): $(BUILD)/%: $(ROOT)/%.c $(EMULATOR_MADE) $(BUILD)/flags/tests
	$(build_test)

-include $(EMULATOR_C_TESTS:=.d) $(sort $(patsubst %.o,%.d,$(EMULATOR_OBJECTS) $(PORTABLE_OBJECTS) $(ASSERTED_OBJECTS)))
