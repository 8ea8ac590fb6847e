// Kernel attributes as JSON that keeps their types, and real numbers that may be infinite.
//
//   {"count": 8, "epsilon": 1e-05, "predicate": "gt", "dims": [0, 1], "value": {"real": "-inf"},
//    "scales": {"reals": [0.5, "inf"]}}
//
// A number without a point or an exponent is an integer, a list one of integers. Reals are printed so that the same
// number is read again; all NaN are one.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernels/describe/attributes.h"
#include "runtime/base/json.h"

namespace weft {

// A number, or "inf", "-inf", "nan". Errors name `where`.
Json printReal(double value);
absl::StatusOr<double> parseReal(const Json& json, const std::string& where);

Json printAttributes(const AttributeMap& attributes);
// `json` is an object. Errors name the entry below `where`.
absl::StatusOr<AttributeMap> parseAttributes(const Json& json, const std::string& where);

}  // namespace weft
