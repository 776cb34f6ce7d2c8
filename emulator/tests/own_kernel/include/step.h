#ifndef STEP
#define STEP 1
#endif
int first_value();
