# lesson.mk: the one set of rules. Included at the root it serves all chapters, included by a
# chapter's Makefile that chapter alone; the goals are the same.
#
#   DEVICE=gpu|emulator   where programs run; default: a Hopper GPU if there is one
#   CUDA_HOME=...         the CUDA Toolkit; default: PATH, /usr/local/cuda, else it is fetched
#                         ("fetch": it is fetched, whatever is installed)
#   PROGRAM=name          run this program instead of the main ones
#   TESTS=name            check runs only this file of tests/, whichever it is
#   EXERCISE=number       start or judge this exercise instead of the next
#   TO=dir                where the headers of take go; default: build/take
#   PREFIX=dir DESTDIR=dir   where make install puts the emulator; default: /usr/local
#   SANITIZE="..."        flags such as -fsanitize=address, for all host code
#   WERROR=1              warnings are errors
#   V=1                   show the commands

ifneq ($(filter 3.% 4.0 4.1,$(MAKE_VERSION)),)
$(error this is GNU Make $(MAKE_VERSION), but 4.2 or newer is needed)
endif
# Neither make nor the linker can quote every character of a path.
quoted = '$(subst ','\'',$(1))'
comma := ,
space := $() $()
hash := \#
define unusable
! " $ % & ' ( ) * , : ; < = > ? [ \ ] ` { | }
endef
unusable_in = $(strip $(if $(findstring $(space),$(1))," ") \
  $(foreach c,$(value unusable) $(hash),$(if $(findstring $(c),$(1)),"$(c)")))
ifneq ($(call unusable_in,$(CURDIR)),)
$(error this folder is '$(CURDIR)', and make and the linker cannot work with $(call unusable_in,$(CURDIR)) in a path: \
move it to where all folders have names of letters, digits and . _ + - @)
endif

ROOT := $(patsubst %/common/make/lesson.mk,%,$(abspath $(lastword $(MAKEFILE_LIST))))
include $(addprefix $(ROOT)/common/make/,start.mk steps.mk toolkit.mk support.mk) $(ROOT)/emulator/emulator.mk \
  $(addprefix $(ROOT)/common/make/,lessons.mk exercises.mk tests.mk goals.mk)
