#include "sampling/elementary.h"

#include <cmath>

namespace deepinfer {

double LogFromRatio(double s) {
  const double s2 = s * s;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;  // the odd series
  return 2.0 * s * sum;
}

double LogDouble(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  return LogFromRatio((m - 1) / (m + 1)) + exponent * 0.69314718055994531;
}

double ExpDouble(double x) {
  if (x < -700) return 0;
  // x = n ln2 + r, |r| <= ln2 / 2, with ln2 in two parts of which the first has 32 bits.
  const double n = std::nearbyint(x * 1.4426950408889634);
  const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  double sum = 1;
  for (int k = 14; k >= 1; --k) sum = sum * r / k + 1;  // Taylor's series by Horner's rule
  return std::ldexp(sum, static_cast<int>(n));
}

}  // namespace deepinfer
