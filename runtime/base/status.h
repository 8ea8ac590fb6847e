// Short forms for functions that return absl::Status or absl::StatusOr.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define WEFT_CONCAT_INNER(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_INNER(a, b)

// Returns from the enclosing function if `expr` (an absl::Status) is an error.
#define WEFT_RETURN_IF_ERROR(expr)                              \
  do {                                                          \
    if (absl::Status weft_status = (expr); !weft_status.ok()) { \
      return weft_status;                                       \
    }                                                           \
  } while (false)

// WEFT_ASSIGN_OR_RETURN(auto value, functionReturningStatusOr());
#define WEFT_ASSIGN_OR_RETURN(lhs, expr) WEFT_ASSIGN_OR_RETURN_IMPL(WEFT_CONCAT(weft_or_, __LINE__), lhs, expr)
#define WEFT_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  if (!tmp.ok()) {                                 \
    return tmp.status();                           \
  }                                                \
  lhs = std::move(tmp).value()
