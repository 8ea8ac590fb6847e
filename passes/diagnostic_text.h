// The diagnostics of a run as one text.
#pragma once

#include <string>

#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

namespace weft {

// All errors while it lives, a line each, the user's place first: "model.cc:12: error: ...".
class DiagnosticText {
 public:
  explicit DiagnosticText(mlir::MLIRContext* context)
      : handler_(context, [this](mlir::Diagnostic& diagnostic) {
          add(diagnostic);
          return mlir::success();
        }) {}

  const std::string& text() const { return text_; }

 private:
  void add(mlir::Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error) {
      return;
    }
    llvm::raw_string_ostream stream(text_);
    if (!text_.empty()) {
      stream << "\n";
    }
    if (auto place = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>()) {
      stream << place.getFilename().getValue() << ":" << place.getLine() << ": ";
    }
    stream << "error: " << diagnostic.str();
  }

  std::string text_;
  mlir::ScopedDiagnosticHandler handler_;
};

}  // namespace weft
