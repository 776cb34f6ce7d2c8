# support.mk: what every program is linked with, and the tools beside the programs.
COMMON_SOURCES := $(wildcard $(ROOT)/common/*.c)
COMMON_OBJECTS := $(patsubst $(ROOT)/%.c,$(BUILD)/%.o,$(COMMON_SOURCES))
COMMON_LIBRARY := $(BUILD)/common/libcommon.a
TENSOR_MAP_COMMAND := $(if $(wildcard $(ROOT)/common/tools/tensor_map_command.c),\
  $(BUILD)/common/tensor-map)
FIND_DEVICE := $(BUILD)/common/find-device

# -MT: ccache with a base_dir would else name the object by another path than this file does, and
# a changed header would rebuild nothing.
$(BUILD)/common/%.o: $(ROOT)/common/%.c $(CC_MADE)
	@mkdir -p $(@D)
	$(step) $(CC) $(CC_FLAGS) -I$(ROOT)/common -MMD -MP -MT $@ -c $< -o $@

$(COMMON_LIBRARY): $(COMMON_OBJECTS)
	$(Q)rm -f $@
	$(step) $(AR) rcs $@ $^

$(BUILD)/common/tensor-map: $(BUILD)/common/tools/tensor_map_command.o $(filter $(BUILD)/common/tensor_map%,$(COMMON_OBJECTS))
	$(step) $(CC) $(SANITIZE) -o $@ $(filter-out %/tensor_map_encode.o,$^) -lm

$(FIND_DEVICE): $(BUILD)/common/make/find_device.o
	$(step) $(CC) $(SANITIZE) -o $@ $^ -ldl

-include $(COMMON_OBJECTS:.o=.d) $(BUILD)/common/tools/tensor_map_command.d $(BUILD)/common/make/find_device.d $(BUILD)/common/exercises/judge.d
