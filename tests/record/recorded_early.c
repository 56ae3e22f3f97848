// A program whose first call of malloc is its library's.
void* block_from_library(void);

int main(void) { return block_from_library() == 0; }
