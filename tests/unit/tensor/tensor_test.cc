#include <gtest/gtest.h>

#include <set>

#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace deepinfer {
namespace {

constexpr DType kAll[] = {DType::kBF16, DType::kF32, DType::kF8E4M3, DType::kF8E8M0,
                          DType::kI8,   DType::kU8,  DType::kI32,    DType::kI64};

TEST(DType, NamesAreDistinctAndParseBack) {
  std::set<std::string_view> names;
  for (DType dtype : kAll) {
    EXPECT_EQ(ParseDType(DTypeName(dtype)), dtype);
    names.insert(DTypeName(dtype));
  }
  EXPECT_EQ(names.size(), std::size(kAll));
}

TEST(DType, UnknownNamesAreEmptyInsteadOfADefault) {
  for (std::string_view name : {"", "F16", "bf16", "F8_E5M2", "F64", "BF16 ", "?"}) {
    EXPECT_EQ(ParseDType(name), std::nullopt) << name;
  }
}

TEST(DType, SizesAreThoseOfTheFormat) {
  EXPECT_EQ(DTypeBytes(DType::kBF16), 2u);
  EXPECT_EQ(DTypeBytes(DType::kF32), 4u);
  EXPECT_EQ(DTypeBytes(DType::kF8E4M3), 1u);
  EXPECT_EQ(DTypeBytes(DType::kF8E8M0), 1u);
  EXPECT_EQ(DTypeBytes(DType::kI8), 1u);
  EXPECT_EQ(DTypeBytes(DType::kU8), 1u);
  EXPECT_EQ(DTypeBytes(DType::kI32), 4u);
  EXPECT_EQ(DTypeBytes(DType::kI64), 8u);
}

TEST(TensorView, CountsElementsAndBytesBeyond32Bits) {
  const TensorView table{DType::kF8E4M3, {384006168, 256}, nullptr};
  EXPECT_EQ(table.elements(), 98305579008);
  EXPECT_EQ(table.bytes(), 98305579008u);
  EXPECT_EQ((TensorView{DType::kF32, {}, nullptr}.bytes()), 4u) << "a scalar has one element";
  EXPECT_EQ((TensorView{DType::kF32, {3, 0, 5}, nullptr}.bytes()), 0u);
}

TEST(TensorView, ShapesPrintLikeTheHeader) {
  EXPECT_EQ(ShapeString({3, 128}), "[3, 128]");
  EXPECT_EQ(ShapeString({}), "[]");
}

}  // namespace
}  // namespace deepinfer
