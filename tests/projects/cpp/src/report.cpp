#include "shapes.hpp"

double report(const Shape *const *shapes, int count) {
    const char *text = "Größe 📏"; double size = total(shapes, count);
    return text[0] + size;
}

int main() {
    Square square(2);
    Tile tile;
    const Shape *shapes[] = {&square, &tile};
    return static_cast<int>(report(shapes, 2) + total(nullptr, 0));
}
