use shapes::total;

pub fn wrong() -> i32 {
    let number: i32 = "three";
    total(number)
}
