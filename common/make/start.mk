# start.mk: where everything is, how make runs, and what is refused before anything begins.
BUILD := $(ROOT)/build
ifneq ($(call unusable_in,$(BUILD))$(if $(filter /%,$(firstword $(BUILD))),,no path),)
$(error BUILD is '$(BUILD)', but must be a path that begins with / and has only letters, digits \
and . _ + - @ in its names)
endif
# A goal becomes a word of commands below.
ifneq ($(call unusable_in,$(subst $(space),,$(MAKECMDGOALS))),)
$(error the goals are '$(MAKECMDGOALS)', but there is no goal with $(call unusable_in,$(subst $(space),,$(MAKECMDGOALS))) \
in its name: make help lists them)
endif

ALL_CHAPTERS := $(notdir $(wildcard $(ROOT)/[0-9][0-9]_*))
# run-02 and the like: the same as run in that chapter's folder. Several such goals are a make each (goals.mk).
BY_CHAPTER := run check bench pitfalls exercise exercises hint watch take figures
ASKED := $(or $(MAKECMDGOALS),all)
number_of = $(patsubst %,0%,$(filter 1 2 3 4 5 6 7 8 9,$(1)))$(filter-out 1 2 3 4 5 6 7 8 9,$(1))
NUMBERED := $(filter-out check-all check-all-programs check-programs check-page check-readmes bench-emulator,$(if \
  $(filter $(ROOT),$(CURDIR)),$(filter $(addsuffix -%,$(BY_CHAPTER)),$(ASKED))))
chapter_of = $(filter $(call number_of,$(lastword $(subst -, ,$(1))))_%,$(ALL_CHAPTERS))
UNKNOWN_CHAPTER := $(firstword $(foreach g,$(NUMBERED),$(if $(call chapter_of,$(g)),,$(g))))
ifneq ($(UNKNOWN_CHAPTER),)
$(error there is no chapter '$(lastword $(subst -, ,$(UNKNOWN_CHAPTER)))'; the chapters are: $(ALL_CHAPTERS))
endif
CHAPTER := $(if $(word 2,$(ASKED)),,$(foreach g,$(NUMBERED),$(call chapter_of,$(g))))
CHAPTERS := $(or $(CHAPTER),$(if $(filter $(ROOT),$(CURDIR)),$(ALL_CHAPTERS),$(notdir $(CURDIR))))
# All of them, and what belongs to none.
WHOLE := $(if $(CHAPTER),,$(filter $(ROOT),$(CURDIR)))
# A chapter's rooms: its folder, and each folder within it that has a README.
ROOMS := $(foreach c,$(CHAPTERS),$(c) $(patsubst $(ROOT)/%/README.md,%,$(wildcard $(ROOT)/$(c)/*/README.md)))
Q := $(if $(filter 1,$(V)),,@)
make_folder = @mkdir -p $(@D)
# Asked before there is another shell: then make starts it without one.
PROCESSORS := $(if $(filter 0,$(MAKELEVEL)),$(shell nproc))
SHELL := $(or $(firstword $(wildcard $(addsuffix /bash,$(subst :, ,$(PATH))))),$(error bash is needed, and is \
not on PATH: install it))
# Every tool that a rule starts has an empty input: at a terminal, one that reads would wait for ever.
# Not ":=": GNU Make 4.4 expands the value of this variable once more, and "$$0" would be a name of make's own.
.SHELLFLAGS = -c 'exec </dev/null; eval "$$0"'
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
# With -n, -q or -t nothing is built.
ONLY_ASKED := $(strip $(foreach f,n q t,$(findstring $(f),$(firstword -$(MAKEFLAGS)))))
SILENT := $(findstring s,$(firstword -$(MAKEFLAGS)))
MAKEFLAGS += --no-builtin-rules
# All cores, unless the caller has said how many; a make within a make shares the outer one's.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(PROCESSORS)
endif

# One of these words, or none: "gpu emulator" is neither.
not_among = $(or $(filter-out $(2),$(1)),$(word 2,$(1)))
ifneq ($(call not_among,$(V),0 1),)
$(error V is '$(V)', but must be 0 or 1 (1 shows the commands))
endif
ifneq ($(call not_among,$(WERROR),0 1),)
$(error WERROR is '$(WERROR)', but must be 0 or 1 (1 makes warnings errors))
endif
ifneq ($(call not_among,$(DEVICE),gpu emulator),)
$(error DEVICE is '$(DEVICE)', but must be gpu or emulator (or not set: a Hopper GPU if there is one))
endif
override DEVICE := $(strip $(DEVICE))
export DEVICE TO EXERCISE DESTDIR
# What is written here is held to the strict findings too: they also make the exit code 3.
export EMULATOR_CHECK ?= strict

# Only some goals compile, and look for the compilers.
GOALS := $(if $(CHAPTER),$(firstword $(subst -, ,$(ASKED))),$(ASKED))
RUNNING := $(filter run run-% check% bench% pitfalls% exercise% hint% watch% measure-clock figures% book take%,$(ASKED))
ifneq ($(and $(filter-out $(ROOT)/build,$(BUILD)),$(RUNNING)),)
$(error BUILD is '$(BUILD)', but "make $(firstword $(RUNNING))" needs its programs in $(ROOT)/build: leave BUILD out)
endif
COMPILING := $(filter-out help clean uninstall format lint-page hint hint-% exercises exercises-% take take-%,$(GOALS))
