;;; contexture-list-order.el --- Sort, filter and move in the list  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Sorting and filtering the list, and moving items.  Sorting and
;; filtering change only the list; moving changes the order of the context
;; itself, which is the order a model sees.

;;; Code:

(require 'contexture-list)
(eval-when-compile (require 'subr-x))

;;;; Sorting

(defun contexture-list-sort (column)
  "Sort the list by COLUMN, a name: the one at point, or one that you choose.
Sorting by the same column again reverses the order.  The context keeps
its own order; \\<contexture-list-mode-map>\\[contexture-list-unsort] shows that again."
  (interactive (list (contexture-list-order--column last-input-event)))
  (setq tabulated-list-sort-key
        (cons column (and (equal column (car tabulated-list-sort-key))
                          (not (cdr tabulated-list-sort-key)))))
  (contexture-list--draw)
  (contexture--message "Sorted by %s%s; %s shows the context's order"
           (downcase column)
           (if (cdr tabulated-list-sort-key) ", backwards" "")
           (substitute-command-keys "\\[contexture-list-unsort]")))

(defun contexture-list-order--column (event)
  "Return the column clicked by EVENT, or at point, or chosen by the user."
  (when (mouse-event-p event)
    (mouse-set-point event))
  (or (get-text-property (point) 'contexture-list-column)
      (and (or (mouse-event-p event)
               (and (tabulated-list-get-id) (> (current-column) 3)))
           (contexture-list--column-at (current-column) tabulated-list-format))
      (let ((completion-ignore-case t))
        (completing-read "Sort by: " (cl-loop for (name _ sortable)
                                              across tabulated-list-format
                                              when sortable collect name)
                         nil t))))

(defun contexture-list-unsort ()
  "Show the items in the order of the context, as a model sees them."
  (interactive)
  (setq tabulated-list-sort-key nil)
  (contexture-list--draw)
  (message "In the order of the context"))

;;;; Moving

(defun contexture-list-move-up ()
  "Move the item at point up by one."
  (interactive)
  (contexture-list-order--move -1))

(defun contexture-list-move-down ()
  "Move the item at point down by one."
  (interactive)
  (contexture-list-order--move 1))

(defun contexture-list-order--move (step)
  "Move the item at point by STEP lines, 1 or -1, in the context too.
The list does not wait for the server, so you can type keys fast."
  (when tabulated-list-sort-key
    (contexture--user-error "The list is sorted by %s, so you would not see the move; \
%s shows the context's order"
                (downcase (car tabulated-list-sort-key))
                (substitute-command-keys "\\[contexture-list-unsort]")))
  (let* ((item (contexture-list--item))
         (shown (contexture-list--shown-items))
         (place (+ step (cl-position item shown)))
         (neighbour (or (and (>= place 0) (nth place shown))
                        (contexture--user-error "This is the %s item"
                                    (if (< step 0) "first" "last")))))
    (unless (equal (plist-get item :manager) (plist-get neighbour :manager))
      (contexture--user-error "This is the %s item of its layer; %s moves it to another"
                  (if (< step 0) "first" "last")
                  (substitute-command-keys
                   (if (< step 0) "\\[contexture-list-to-general]"
                     "\\[contexture-list-to-special]"))))
    (contexture-list--draw-ahead
     (contexture-list-order--put item neighbour (> step 0)
                                 contexture-list--items))
    (contexture-list--change 'move-item
                             (list :id (plist-get item :id)
                                   (if (> step 0) :after :before)
                                   (plist-get neighbour :id)))))

(defun contexture-list-order--put (item neighbour after items)
  "Return ITEMS with ITEM before NEIGHBOUR, or after it if AFTER is non-nil."
  (cl-loop for each in items
           if (eq each neighbour)
           append (if after (list neighbour item) (list item neighbour))
           else unless (eq each item) collect each))

;;;; Moving to another layer

(defun contexture-list-to-special ()
  "Move the items in the region, else the marked ones, to a more special layer.
Without any, move the item at point."
  (interactive)
  (contexture-list-order--transfer 1))

(defun contexture-list-to-general ()
  "Move the items in the region, else the marked ones, to a more general layer.
Without any, move the item at point."
  (interactive)
  (contexture-list-order--transfer -1))

(defun contexture-list-order--transfer (step)
  "Move items by STEP layers, 1 or -1."
  (unless (consp contexture-manager)
    (user-error "This list shows one context, and not the layers of a buffer"))
  (let* ((ids (contexture-list--ids))
         (from (contexture-list--manager-of (car ids)))
         (place (+ step (cl-position from contexture-manager :test #'equal)))
         (into (or (and (>= place 0) (nth place contexture-manager))
                   (contexture--user-error "These items are in the most %s layer already"
                               (if (> step 0) "special" "general")))))
    (unless (cl-every (lambda (id) (equal from (contexture-list--manager-of id))) ids)
      (user-error "These items are in several layers; choose those of one"))
    (contexture-list--change
     'transfer-items (list :ids ids :into into)
     (lambda (_)
       (setq contexture--last-changed into)
       (contexture--message "Moved %s to %s; %s undoes it"
                (contexture--count (length ids) "item") (contexture--label into)
                (substitute-command-keys "\\[contexture-undo]"))))
    (setq deactivate-mark t)))

;;;; Filtering

(defun contexture-list-filter-type (type)
  "Show only the items of TYPE, a type or an origin such as diff.
Empty input shows all types."
  (interactive (list (contexture-list-order--choose
                      "type" #'contexture-list--kinds)))
  (contexture-list-order--filter 'type type))

(defun contexture-list-filter-state (state)
  "Show only the items in STATE, such as stale.
Empty input shows all states."
  (interactive (list (contexture-list-order--choose
                      "state" (lambda (item) (list (contexture-list--state item))))))
  (contexture-list-order--filter 'state state))

(defun contexture-list-filter-name (regexp)
  "Show only the items whose source, as listed, matches REGEXP.
Empty input shows all."
  (interactive (list (read-regexp "Show only sources that match: ")))
  (contexture-list-order--filter 'name (contexture-list-order--check regexp)))

(defun contexture-list-filter-contents (regexp)
  "Show only the items whose text matches REGEXP.
Empty input shows all."
  (interactive (list (read-regexp "Show only texts that match: ")))
  (contexture-list-order--filter 'contents (contexture-list-order--check regexp)))

(defun contexture-list-unfilter ()
  "Show all items of the context again."
  (interactive)
  (setq contexture-list--filters nil)
  (contexture-list--draw)
  (message "All items are shown"))

(defun contexture-list-order--choose (noun values)
  "Ask the user for one of the values of the items.
The function VALUES returns a list of strings for an item; NOUN names
them in the prompt."
  (completing-read (format "Show only the %s: " noun)
                   (sort (delete-dups (mapcan (lambda (item)
                                                (copy-sequence (funcall values item)))
                                              (copy-sequence contexture-list--items)))
                         #'string<)
                   nil t))

(defun contexture-list-order--check (regexp)
  "Return REGEXP, or signal an error if it is invalid."
  (condition-case problem
      (progn (string-match-p regexp "") regexp)
    (invalid-regexp (contexture--user-error "This is not a regular expression: %s" (cadr problem)))))

(defun contexture-list-order--filter (kind value)
  "Show only the items whose KIND has VALUE, in addition to other filters.
An empty VALUE removes the filter of that kind."
  (setq contexture-list--filters
        (append (unless (string-empty-p value) (list (cons kind value)))
                (assq-delete-all kind contexture-list--filters)))
  (if (and (eq kind 'contents) (not (string-empty-p value)))
      (contexture-list--update)         ; the texts are fetched first
    (contexture-list--draw)))

(provide 'contexture-list-order)
;;; contexture-list-order.el ends here
