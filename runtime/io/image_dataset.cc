#include "runtime/io/image_dataset.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"
#include "runtime/io/shuffle.h"

namespace weft {
namespace {

constexpr uint8_t kUnsignedBytes = 8;
constexpr int64_t kChunk = int64_t{1} << 20;
constexpr int64_t kMostElements = int64_t{1} << 40;
// No compressed byte stands for more: deflate codes at most 258 bytes in 2 bits, and its own blocks cost something.
constexpr int64_t kMostPerByte = 1032;

// A file behind zlib, which hands through what is not compressed.
class GzFile {
 public:
  explicit GzFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {}
  ~GzFile() {
    if (file_ != nullptr) {
      gzclose_r(file_);
    }
  }
  GzFile(const GzFile&) = delete;
  GzFile& operator=(const GzFile&) = delete;

  bool isOpen() const { return file_ != nullptr; }

  // Up to `size` bytes; fewer at the end of the file.
  absl::StatusOr<int64_t> read(void* to, int64_t size) {
    const int got = gzread(file_, to, static_cast<unsigned>(size));
    int code = Z_OK;
    const char* text = gzerror(file_, &code);
    // Z_BUF_ERROR: the compressed stream ends in its middle.
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      const char* reason = code == Z_ERRNO ? std::strerror(errno) : code == Z_BUF_ERROR ? "it is cut short" : text;
      return absl::DataLossError(absl::StrCat(path_, ": the file cannot be read: ", reason));
    }
    return got;
  }

 private:
  std::string path_;
  gzFile file_;
};

absl::StatusOr<std::vector<int64_t>> readHeader(GzFile& file, const std::string& path) {
  const absl::Status notIdx =
      absl::DataLossError(absl::StrCat(path, ": no IDX file: it does not begin with 0, 0, a type and its sizes"));
  uint8_t magic[4];
  WEFT_ASSIGN_OR_RETURN(const int64_t got, file.read(magic, 4));
  if (got < 4 || magic[0] != 0 || magic[1] != 0 || magic[3] == 0) {
    return notIdx;
  }
  if (magic[2] != kUnsignedBytes) {
    return absl::DataLossError(
        absl::StrCat(path, ": elements of type ", magic[2], "; only unsigned bytes (", kUnsignedBytes, ") are read"));
  }
  std::vector<uint8_t> sizes(4 * static_cast<size_t>(magic[3]));
  WEFT_ASSIGN_OR_RETURN(const int64_t sizeBytes, file.read(sizes.data(), static_cast<int64_t>(sizes.size())));
  if (sizeBytes < static_cast<int64_t>(sizes.size())) {
    return notIdx;
  }
  std::vector<int64_t> shape;
  for (size_t at = 0; at < sizes.size(); at += 4) {
    shape.push_back(int64_t{sizes[at]} << 24 | sizes[at + 1] << 16 | sizes[at + 2] << 8 | sizes[at + 3]);
  }
  return shape;
}

absl::StatusOr<int64_t> elementsOf(const std::vector<int64_t>& shape, const std::string& path) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size > 0 && elements > kMostElements / size) {
      return absl::DataLossError(
          absl::StrCat(path, ": sizes [", absl::StrJoin(shape, ","), "] are too large; the header is damaged"));
    }
    elements *= size;
  }
  return elements;
}

// What the header asks for must be possible in a file of this length: a few damaged or hostile bytes are refused before
// anything is read for them. Of a pipe the length is not known.
absl::Status checkLength(const std::string& path, const std::vector<int64_t>& shape, int64_t elements) {
  struct stat state = {};
  if (stat(path.c_str(), &state) != 0 || !S_ISREG(state.st_mode) || elements / kMostPerByte <= state.st_size) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(path, ": sizes [", absl::StrJoin(shape, ","), "] ask for ", elements,
                                          " elements, more than a file of ", state.st_size,
                                          " bytes can hold; the header is damaged or the file cut short"));
}

}  // namespace

absl::StatusOr<IdxTensor> readIdx(const std::string& path) {
  errno = 0;
  GzFile file(path);
  if (!file.isOpen()) {
    return absl::NotFoundError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  IdxTensor tensor;
  WEFT_ASSIGN_OR_RETURN(tensor.shape, readHeader(file, path));
  WEFT_ASSIGN_OR_RETURN(const int64_t elements, elementsOf(tensor.shape, path));
  WEFT_RETURN_IF_ERROR(checkLength(path, tensor.shape, elements));
  // One byte more than there should be shows a file that goes on.
  for (int64_t had = 0; had <= elements;) {
    const int64_t wanted = std::min(kChunk, elements + 1 - had);
    tensor.values.resize(had + wanted);
    WEFT_ASSIGN_OR_RETURN(const int64_t got, file.read(tensor.values.data() + had, wanted));
    had += got;
    if (got < wanted) {
      tensor.values.resize(had);
      break;
    }
  }
  const int64_t had = static_cast<int64_t>(tensor.values.size());
  if (had != elements) {
    return absl::DataLossError(absl::StrCat(path, ": ", had > elements ? "more than " : "",
                                            had > elements ? elements : had, " elements, sizes [",
                                            absl::StrJoin(tensor.shape, ","), "] ask for ", elements));
  }
  return tensor;
}

namespace {

absl::Status checkOptions(const ImageDatasetOptions& options) {
  if (!std::isfinite(options.mean)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a mean of ", options.mean, " is taken from pixels; it must be a finite number"));
  }
  return options.deviation > 0 && std::isfinite(options.deviation)
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat("pixels are divided by a deviation of ", options.deviation,
                                                       "; it must be positive and finite"));
}

// Has the tensor as many elements as its sizes say?
absl::Status checkElements(const IdxTensor& tensor, const std::string& name) {
  WEFT_ASSIGN_OR_RETURN(const int64_t elements, elementsOf(tensor.shape, name));
  return elements == static_cast<int64_t>(tensor.values.size())
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(name, " has ", tensor.values.size(), " elements, sizes [",
                                                       absl::StrJoin(tensor.shape, ","), "] ask for ", elements));
}

absl::Status checkImages(const IdxTensor& images, const std::string& imagesName, const IdxTensor& labels,
                         const std::string& labelsName) {
  if (images.shape.size() != 3 || labels.shape.size() != 1 || images.shape[0] != labels.shape[0]) {
    return absl::InvalidArgumentError(absl::StrCat(imagesName, " has sizes [", absl::StrJoin(images.shape, ","),
                                                   "] and ", labelsName, " [", absl::StrJoin(labels.shape, ","),
                                                   "]; they must be [images, rows, columns] and as many labels"));
  }
  WEFT_RETURN_IF_ERROR(checkElements(images, imagesName));
  WEFT_RETURN_IF_ERROR(checkElements(labels, labelsName));
  return labels.values.empty() ? absl::InvalidArgumentError(absl::StrCat(imagesName, " has no image"))
                               : absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageDataset> ImageDataset::open(const std::string& images, const std::string& labels,
                                                const ImageDatasetOptions& options) {
  WEFT_RETURN_IF_ERROR(checkOptions(options));
  WEFT_ASSIGN_OR_RETURN(IdxTensor pixels, readIdx(images));
  WEFT_ASSIGN_OR_RETURN(IdxTensor classes, readIdx(labels));
  WEFT_RETURN_IF_ERROR(checkImages(pixels, images, classes, labels));
  return of(std::move(pixels), std::move(classes), options);
}

absl::StatusOr<ImageDataset> ImageDataset::of(IdxTensor images, IdxTensor labels, const ImageDatasetOptions& options) {
  WEFT_RETURN_IF_ERROR(checkOptions(options));
  WEFT_RETURN_IF_ERROR(checkImages(images, "the tensor of images", labels, "that of labels"));
  ImageDataset data;
  data.options_ = options;
  data.images_ = std::move(images);
  data.labels_ = std::move(labels);
  data.classes_ = 1 + *std::max_element(data.labels_.values.begin(), data.labels_.values.end());
  return data;
}

void ImageDataset::trainBatch(int64_t step, int64_t batch, float* x, int32_t* y) const {
  for (int64_t i = 0; i < batch; ++i) {
    copySample(shuffledSample(step * batch + i, size(), options_.seed), x + i * rows() * columns(), y + i);
  }
}

absl::Status ImageDataset::batch(int64_t first, int64_t batch, float* x, int32_t* y) const {
  if (first < 0 || batch < 0 || first > size() - batch) {
    return absl::OutOfRangeError(absl::StrCat("images ", first, " to ", first + batch, " of ", size()));
  }
  for (int64_t i = 0; i < batch; ++i) {
    copySample(first + i, x + i * rows() * columns(), y + i);
  }
  return absl::OkStatus();
}

void ImageDataset::copySample(int64_t sample, float* x, int32_t* y) const {
  const int64_t pixels = rows() * columns();
  const uint8_t* from = images_.values.data() + sample * pixels;
  for (int64_t i = 0; i < pixels; ++i) {
    x[i] = static_cast<float>((from[i] / 255.0 - options_.mean) / options_.deviation);
  }
  *y = labels_.values[sample];
}

}  // namespace weft
