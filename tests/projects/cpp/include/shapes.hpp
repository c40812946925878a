#pragma once

/// What has an area.
class Shape {
public:
    virtual ~Shape() = default;
    virtual double area() const = 0;
};

class Square : public Shape {
public:
    explicit Square(double side);
    double area() const override;

private:
    double side_;
};

class Tile : public Square {
public:
    Tile();
    double area() const override;
};

/// The sum of all areas.
double total(const Shape *const *shapes, int count);
