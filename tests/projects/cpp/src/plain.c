static int twice(int number) {
    return number + number;
}

int four(void) {
    return twice(2);
}
