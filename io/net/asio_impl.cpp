// The one place where Asio's and Beast's non-template code is compiled; every other file sees declarations only.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
