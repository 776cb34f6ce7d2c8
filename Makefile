# Seven chapters on Hopper's Tensor Memory Accelerator. `make run` and `make check` do everything;
# `make help` lists the rest. The rules are in common/make/lesson.mk, which every chapter includes too.
include common/make/lesson.mk
