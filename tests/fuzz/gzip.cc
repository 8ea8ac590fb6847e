#include "tests/fuzz/gzip.h"

#include <zlib.h>

#include "tests/fuzz/target.h"

namespace weft::fuzz {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to say: with a gzip header

}  // namespace

std::string compressed(const std::string& bytes) {
  z_stream stream = {};
  require(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflateInit2");
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::optional<std::string> decompressed(const std::string& bytes, size_t most) {
  z_stream stream = {};
  require(inflateInit2(&stream, kGzipWindow) == Z_OK, "inflateInit2");
  std::string out(most, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return whole ? std::optional<std::string>(std::move(out)) : std::nullopt;
}

}  // namespace weft::fuzz
