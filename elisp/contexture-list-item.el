;;; contexture-list-item.el --- See and edit the text of an item  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Showing, copying and editing the text of an item of the list, and
;; visiting its source.  The list has no texts; these are fetched on
;; demand, without waiting.

;;; Code:

(require 'contexture-list)
(eval-when-compile (require 'subr-x))

(defvar view-inhibit-help-message)

(defconst contexture-list--item-buffer "*contexture: item*"
  "Name of the buffer that shows one item's text.")

;;;; Texts

(defun contexture-list-item--fetch (ids function)
  "Call FUNCTION with the items IDS and their texts, in the context's order.
It runs in this buffer.  Items that left the context are skipped."
  (contexture-list--call 'list-items (list :ids ids)
                         (lambda (items)
                           (if items (funcall function items)
                             (message "The item is gone")))))

(defun contexture-list-copy ()
  "Copy the text of the items in the region, the marked ones, or the one at point."
  (interactive)
  (contexture-list-item--fetch
   (contexture-list--ids)
   (lambda (items)
     (let ((text (contexture-list-item--join
                  (mapcar (lambda (item) (plist-get item :content)) items))))
       (kill-new text)
       (contexture--message "Copied %s%s" (contexture--count (length text) "character")
                (if (cdr items)
                    (concat " of " (contexture--count (length items) "item"))
                  "")))))
  (setq deactivate-mark t))

(defun contexture-list-item--join (texts)
  "Return TEXTS joined, each on a new line."
  (let ((result (car texts)))
    (dolist (text (cdr texts) result)
      (setq result (concat result
                           (if (string-suffix-p "\n" result) "" "\n")
                           text)))))

;;;; Visiting and showing

(defun contexture-list-visit ()
  "Go to where the item at point came from.
If its source is gone, show the item's text."
  (interactive)
  (when (mouse-event-p last-input-event)
    (mouse-set-point last-input-event))
  (let* ((metadata (plist-get (contexture-list--item) :metadata))
         (buffer (contexture-list-item--source-buffer metadata)))
    (if (null buffer)
        (contexture-list-item--show
         (lambda ()
           (contexture--message "%s is gone; this is the text taken from it"
                    (contexture--place metadata))))
      (contexture-list-item--visit buffer metadata))))

(defun contexture-list-item--visit (buffer metadata)
  "Show BUFFER, at the line that METADATA names."
  (pop-to-buffer buffer)
  (when-let* ((line (plist-get metadata :start-line)))
    (contexture-list-item--go-to-line line)))

(defun contexture-list-item--source-buffer (metadata)
  "Return a buffer with the file, or else the buffer, that METADATA names, or nil."
  (let ((file (plist-get metadata :filename))
        (buffer (plist-get metadata :buffer)))
    (cond ((and file (find-buffer-visiting file)))
          ((and file (file-exists-p file)) (find-file-noselect file))
          (file nil)
          (buffer (get-buffer buffer)))))

(defun contexture-list-item--go-to-line (line)
  "Go to LINE of the whole buffer, widening if it is hidden."
  (let ((position (save-excursion
                    (save-restriction
                      (widen)
                      (contexture--line-position line)))))
    (unless (<= (point-min) position (point-max))
      (widen))
    (push-mark nil t)
    (goto-char position)))

(defun contexture-list-show ()
  "Show the text of the item at point in another window."
  (interactive)
  (contexture-list-item--show #'ignore))

(defun contexture-list-item--show (then)
  "Show the text of the item at point, then call THEN."
  (contexture-list-item--fetch
   (list (plist-get (contexture-list--item) :id))
   (lambda (items)
     (contexture-list-item--display (car items))
     (funcall then))))

(defun contexture-list-item--display (item)
  "Show the text of ITEM in another window."
  (with-current-buffer (get-buffer-create contexture-list--item-buffer)
    (let ((inhibit-read-only t))
      (contexture-list-item--insert item)
      (ignore-errors (font-lock-ensure))
      (contexture--show-hidden))
    (setq header-line-format (contexture-list-item--header
                              (concat
                               (contexture--description (plist-get item :metadata))
                               (contexture-list-item--age item))))
    (setq-local view-inhibit-help-message t)
    (view-mode-enter nil #'ignore)
    (display-buffer (current-buffer))))

(defun contexture-list-item--age (item)
  "Return a phrase for the time of ITEM's text if it is not its source's, or \"\"."
  (if-let* ((as-of (plist-get item :as-of)))
      (concat (format-time-string " as of %F %R" as-of)
              (when-let* ((reason (plist-get (plist-get item :metadata) :stale)))
                (concat ": " reason)))
    ""))

(defun contexture-list-item--insert (item)
  "Replace this buffer's text with that of ITEM, in the major mode for it."
  (erase-buffer)
  (insert (plist-get item :content))
  (goto-char (point-min))
  (delay-mode-hooks (funcall (contexture-list-item--mode
                              (plist-get item :metadata))))
  (set-buffer-modified-p nil))

(defun contexture-list-item--header (text)
  "Return a header line that shows TEXT."
  (replace-regexp-in-string "%" "%%" (concat " " text)))

(defun contexture-list-item--mode (metadata)
  "Return the major mode for text with METADATA, if it is a safe one.
Else return `fundamental-mode'."
  (let* ((names (list (plist-get metadata :mode)
                      (plist-get metadata :language)
                      (contexture--file-mode
                       (or (plist-get metadata :filename) ""))))
         (modes (mapcar (lambda (name) (and (stringp name) (intern-soft name)))
                        names)))
    (or (cl-find-if (lambda (mode)
                      (and mode (fboundp mode)
                           ;; Emacs 30 wants several modes as a list, and 28 takes none.
                           (cl-some (lambda (parent)
                                      (provided-mode-derived-p mode parent))
                                    '(prog-mode text-mode conf-mode))))
                    modes)
        #'fundamental-mode)))

;;;; Editing

(defvar-local contexture-list-item--edited nil
  "Item that is edited in this buffer, as last seen.")

(defvar-local contexture-list-item--saving nil
  "Non-nil while the text of this buffer is on its way to the server.")

(defvar contexture-list-edit-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'contexture-list-edit-finish)
    (define-key map (kbd "C-c C-k") #'contexture-list-edit-abort)
    (define-key map [remap save-buffer] #'contexture-list-edit-finish)
    map)
  "Keymap of `contexture-list-edit-mode'.")

(define-minor-mode contexture-list-edit-mode
  "Minor mode for editing the text of an item of a context.
\\<contexture-list-edit-mode-map>\\[contexture-list-edit-finish] saves this buffer's text as the item's, and
\\[contexture-list-edit-abort] discards the change.  The item's file is not touched."
  :lighter " Edit-Item")

(defun contexture-list-edit ()
  "Edit the text of the item at point in its own buffer.
Only the item changes, not its file, and it follows that no longer."
  (interactive)
  (let* ((item (contexture-list--item))
         (buffer (contexture-list-item--edit-buffer (plist-get item :id))))
    (when (and (plist-get item :live)
               (null (plist-get (plist-get item :metadata) :start-line)))
      (user-error "This item is read from its file whenever it is used; \
edit the file"))
    (if buffer
        (pop-to-buffer buffer)
      (contexture-list-item--fetch (list (plist-get item :id))
                                   #'contexture-list-item--edit))))

(defun contexture-list-item--edit-buffer (id)
  "Return the buffer in which the item ID of this context is edited, or nil."
  (cl-find-if (lambda (buffer)
                (with-current-buffer buffer
                  (and contexture-list-edit-mode
                       (equal id (plist-get contexture-list-item--edited :id)))))
              (buffer-list)))

(defun contexture-list-item--edit (items)
  "Open a buffer to edit the first of ITEMS, unless there is one already.
Select it unless the user went elsewhere meanwhile."
  (let* ((item (car items))
         (here (eq (window-buffer) (current-buffer)))
         (buffer (or (contexture-list-item--edit-buffer (plist-get item :id))
                     (contexture-list-item--make-edit-buffer item))))
    (if here (pop-to-buffer buffer) (display-buffer buffer))))

(defun contexture-list-item--make-edit-buffer (item)
  "Return a new buffer to edit ITEM of this list's context."
  (let ((manager (or (plist-get item :manager) contexture-manager))
        (source (contexture--description (plist-get item :metadata))))
    (with-current-buffer (generate-new-buffer
                          (format "*contexture: edit %s*" source))
      (contexture-list-item--insert item)
      (setq buffer-undo-list nil
            contexture-manager manager
            contexture-list-item--edited item
            header-line-format
            (contexture-list-item--header
             (concat (format "Editing %s" source)
                     (substitute-command-keys
                      "\\<contexture-list-edit-mode-map>: \
\\[contexture-list-edit-finish] saves the change, \
\\[contexture-list-edit-abort] discards it"))))
      (contexture-list-edit-mode)
      (current-buffer))))

(defun contexture-list-edit-finish ()
  "Save this buffer's text as the item's, and leave.
If the item was changed elsewhere meanwhile, nothing is overwritten: a
message says so, and you can repeat the command to overwrite that change."
  (interactive)
  (contexture-list-item--check-editing)
  (cond ((not (buffer-modified-p))
         (message "Nothing was changed")
         (quit-window t))
        ((= (buffer-size) 0)
         (user-error "An item cannot be empty; remove it in the list"))
        (t (setq contexture-list-item--saving t)
           (contexture-list--call
            'list-items
            (list :ids (list (plist-get contexture-list-item--edited :id)))
            (lambda (items) (contexture-list-item--save (car items)))
            #'contexture-list-item--not-saved))))

(defun contexture-list-item--check-editing ()
  "Signal an error unless this buffer edits an item and is not being saved."
  (unless contexture-list-item--edited
    (user-error "No item is edited here"))
  (when contexture-list-item--saving
    (user-error "The server has not answered yet")))

(defun contexture-list-item--save (current)
  "Save this buffer's text unless the item changed meanwhile.
CURRENT is the item as it is now, or nil if it is gone."
  (cond ((null current)
         (contexture-list-item--not-saved)
         (message "The item was removed meanwhile, so nothing was saved; \
your text is still here"))
        ((not (equal (plist-get current :content)
                     (plist-get contexture-list-item--edited :content)))
         (contexture-list-item--not-saved)
         (setq contexture-list-item--edited current)
         (contexture-list-item--display current)
         (contexture--message "%s"
                  (substitute-command-keys
                   "The item was changed elsewhere meanwhile; the other window \
shows it, and \\[contexture-list-edit-finish] again overwrites it")))
        (t (contexture-list-item--send))))

(defun contexture-list-item--not-saved (&optional _problem)
  "Allow this buffer's text to be saved again."
  (setq contexture-list-item--saving nil))

(defun contexture-list-item--send ()
  "Send this buffer's text to the server, then leave the buffer."
  (let ((tick (buffer-chars-modified-tick))
        (text (save-restriction
                (widen)
                (buffer-substring-no-properties (point-min) (point-max)))))
    (contexture-list--call
     'update-item
     (list :id (plist-get contexture-list-item--edited :id) :content text :live :false)
     (lambda (item)
       (setq contexture-list-item--saving nil
             contexture-list-item--edited item)
       (if (/= tick (buffer-chars-modified-tick))
           (message "Saved, except what you typed since")
         (set-buffer-modified-p nil)
         (contexture-list-item--leave)
         (contexture--message "Changed %s (%s)" (contexture--source (plist-get item :metadata))
                  (contexture--count (plist-get item :tokens) "token"))))
     #'contexture-list-item--not-saved)))

(defun contexture-list-item--leave ()
  "Kill this buffer and give its window back."
  (if-let* ((window (get-buffer-window nil t)))
      (quit-window t window)
    (kill-buffer)))

(defun contexture-list-edit-abort ()
  "Leave this buffer without changing the item."
  (interactive)
  (unless contexture-list-item--edited
    (user-error "No item is edited here"))
  (when (or (not (buffer-modified-p))
            (y-or-n-p "Discard your change? "))
    (set-buffer-modified-p nil)
    (contexture-list-item--leave)))

(provide 'contexture-list-item)
;;; contexture-list-item.el ends here
