// The other file of kernel.cu.

__device__ int scale = 3;
__constant__ int table[4] = {0, 100, 200, 300};

static __device__ int own = 5;
static __device__ int addend(void) { return own; }

__device__ int scaled(int x) { return x * scale + addend(); }

static __device__ int up(int x) { return x + 1000; }
static __device__ int down(int x) { return x - 1000; }
__device__ int (*operations[2])(int) = {up, down};
