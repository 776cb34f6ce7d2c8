#include "step.h"

int first_value() { return 7; }
