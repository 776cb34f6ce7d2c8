/* overwrite.h: files that a user names for output must not cost them a file of another kind. */
#pragma once

#include <stdbool.h>

/* Is there a file with content that does not begin as those do that are written here? */
bool would_overwrite(const char *path, const char *beginning);
