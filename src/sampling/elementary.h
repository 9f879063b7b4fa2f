// Double-precision functions whose bits do not depend on the C library: IEEE operations only.
#pragma once

namespace deepinfer {

// Natural logarithm of a positive normal number, relative error below 1e-15 away from 1.
double LogDouble(double x);

// log((1 + s) / (1 - s)) for |s| <= 0.172, relative error below 1e-15.
double LogFromRatio(double s);

// e^x for x <= 0, relative error below 1e-15; 0 below -700.
double ExpDouble(double x);

}  // namespace deepinfer
