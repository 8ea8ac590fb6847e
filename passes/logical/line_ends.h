// What the text of a module says at the end of an operator's line, in its location: who it is, and the user's line.
//
//   %9 = nn.contract %y, %8 {spec = "m k, k n -> m n"} : ... loc("99 of 28 backward @backward stage 1:
//   h1.qkv.grad"("model.cc:32"))
//
// The operator has number 99 (nn.id), is the gradient of number 28 (nn.fwd), belongs to the backward phase (nn.phase),
// runs in the backward function (dist.function) of stage 1 (dist.stage), and is called h1.qkv.grad (nn.name). What an
// operator does not have is left out. In memory these are attributes, and locations hold whole paths; `dist.sources`
// of the module says which.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {

// Puts the attributes above and short names of files ("model.cc:32") into the locations of `module`, which is about to
// be printed, and writes `dist.sources`: the file's own name, or the whole path where two files share one.
void writeLineEnds(mlir::ModuleOp module);

// The inverse, for a module that was parsed from the file `path`; without `dist.sources` nothing changes. Errors name
// the entry of `dist.sources`.
absl::Status readLineEnds(mlir::ModuleOp module, const std::string& path);

// What a location of the text says of the user's place: "model.cc:32"; "" where it says nothing.
std::string shortPlace(mlir::Location location);

}  // namespace weft
