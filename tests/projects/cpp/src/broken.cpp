#include "shapes.hpp"

int wrong() {
    int number = "three";
    return total(nullptr, number);
}
