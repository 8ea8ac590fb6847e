#include "examples/common/family_flags.h"

#include "absl/strings/str_cat.h"
#include "examples/common/text.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/status.h"

namespace weft::examples {

void FamilyFlags::addTo(Flags& flags) {
  common.addTo(flags);
  const ModelSizes usual;
  const auto unlessConfig = [](const std::string& what, int64_t size) {
    return absl::StrCat(what, "; ", size, " where no --config says it");
  };
  flags.text("text", &text, "text file; default: Weft's own documentation");
  flags.toggle("bytes", &bytes, "tokens are bytes instead of characters");
  flags.integer("layers", &layers, unlessConfig("layers", usual.layers), kSize);
  flags.integer("width", &width, unlessConfig("channels", usual.width), kSize);
  flags.integer("heads", &heads, unlessConfig("attention heads", usual.heads), kSize);
  flags.text("config", &config, "sizes from this config.json of Hugging Face's library, or its folder");
  flags.text("weights", &weights, "first parameters from these safetensors, in that library's names");
  flags.text("save-weights", &saveWeights, "parameters to this file at the end, in that library's names");
  flags.integer("context", &context, "tokens of one row", kSize);
  flags.integer("batch", &batch, "rows of one step", kSize);
  flags.real("lr", &lr, "learning rate of AdamW");
  flags.real("clip", &clip, "global gradient norm, 0 = none");
  flags.integer("stages", &stages, "pipeline stages; each has the ranks of --mesh or --devices", kSize);
  flags.toggle("tensor-parallel", &tensorParallel, "the family's table of strategies, over mesh axes dp and tp");
  flags.toggle("sequence-parallel", &sequenceParallel, "residual stream split along the sequence over tp");
  flags.text("losses", &losses, "write the loss of every step to this file");
}

CompileOptions FamilyFlags::options() const {
  CompileOptions options = common.options();
  options.clipNorm = clip;
  return options;
}

TextDatasetOptions FamilyFlags::textOptions() const {
  return {.tokens = bytes ? TokenKind::kByte : TokenKind::kCharacter,
          .window = context,
          .seed = static_cast<uint64_t>(common.seed)};
}

absl::Status FamilyFlags::check() const {
  if (sequenceParallel && !tensorParallel) {
    return absl::InvalidArgumentError("--sequence-parallel has no effect alone; give --tensor-parallel, too");
  }
  if (!config.empty() && (layers || width || heads)) {
    return absl::InvalidArgumentError(absl::StrCat("--",
                                                   layers  ? "layers"
                                                   : width ? "width"
                                                           : "heads",
                                                   " beside --config ", config,
                                                   ": the file says the sizes; leave out one of them"));
  }
  for (const std::string* path : {&losses, &saveWeights}) {
    WEFT_RETURN_IF_ERROR(path->empty() ? absl::OkStatus() : canWrite(*path));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelSizes> FamilyFlags::sizes() const {
  const ModelSizes usual;
  const ModelSizes sizes = {layers.value_or(usual.layers), width.value_or(usual.width), heads.value_or(usual.heads)};
  if (sizes.width % sizes.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--heads ", sizes.heads, " does not divide --width ", sizes.width,
                                                   "; give --width ", (sizes.width / sizes.heads + 1) * sizes.heads,
                                                   ", or other heads"));
  }
  return sizes;
}

absl::Status FamilyFlags::checkModel(int64_t modelLayers, int64_t vocabulary, int64_t tokens) const {
  if (stages > modelLayers) {
    return absl::InvalidArgumentError(absl::StrCat("--stages ", stages, " of a model of ", modelLayers,
                                                   " layers: a stage has at least one; give at most ", modelLayers,
                                                   " stages, or more layers"));
  }
  if (tokens > vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("--config ", config, " has a vocabulary of ", vocabulary,
                                                   ", the text needs ", tokens,
                                                   " tokens: give a text with fewer characters, or another model"));
  }
  return absl::OkStatus();
}

absl::Status FamilyFlags::train(Trainer& trainer, const WeightNames& names,
                                const std::function<absl::Status()>& body) const {
  return common.train(trainer, [&]() -> absl::Status {
    WEFT_RETURN_IF_ERROR(weights.empty() ? absl::OkStatus() : trainer.loadWeights(weights, names));
    const absl::Status trained = body();
    // Also of a run that failed: they show how.
    const absl::Status written = losses.empty() ? absl::OkStatus() : writeLosses(losses, trainer.losses());
    WEFT_RETURN_IF_ERROR(trained);
    WEFT_RETURN_IF_ERROR(written);
    return saveWeights.empty() ? absl::OkStatus() : trainer.saveWeights(saveWeights, names);
  });
}

}  // namespace weft::examples
