// exercise vector_copy: copy with 16-byte accesses
//
// Several blocks of 128 threads together copy `count` numbers from source to destination. Both
// pointers are aligned to 16 bytes. Use 16-byte accesses: the judge counts how often warps read global
// memory. `count` need not be a multiple of 4.
extern "C" __global__ void vector_copy(const int *source, int *destination, int count) {
  // Write here.
}
