// SPDX-License-Identifier: Apache-2.0
#include "model/message_view.h"

namespace once {

Message message_of(const Delivery& delivery) {
  Message message{.id = std::string(delivery.id),
                  .key = copy_of(delivery.key),
                  .body = copy_of(delivery.body),
                  .headers = {},
                  .timestamp_ms = delivery.timestamp_ms};
  message.headers.reserve(delivery.headers.size());
  for (const HeaderView& header : delivery.headers)
    message.headers.push_back({std::string(header.name), copy_of(header.value)});
  return message;
}

std::vector<HeaderView> header_views(const Message& message) {
  std::vector<HeaderView> views;
  views.reserve(message.headers.size());
  for (const Header& header : message.headers)
    views.push_back({header.name, view_of(header.value)});
  return views;
}

DeliveryView::DeliveryView(const Message& message) : headers_(header_views(message)) {
  delivery_.id = message.id;
  delivery_.key = view_of(message.key);
  delivery_.body = view_of(message.body);
  delivery_.headers = headers_;
  delivery_.timestamp_ms = message.timestamp_ms;
}

}  // namespace once
