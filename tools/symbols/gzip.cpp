#include "gzip.hpp"

#include <limits>
#include <stdexcept>

#include <zlib.h>

namespace heapwright::tool {

std::string gzipped(const std::string& data) {
  if (data.size() > std::numeric_limits<uInt>::max()) throw std::runtime_error("4 GiB or more cannot be compressed");
  z_stream stream{};
  constexpr int gzip_header = 16;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + gzip_header, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("no memory to compress");
  std::string result(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));  // zlib does not write there
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int status = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("data cannot be compressed");
  return result;
}

}  // namespace heapwright::tool
