;;; contexture-list.el --- See and arrange a context  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-list' shows the items of one context with their sources,
;; lines and tokens, and changes them.  The list follows the context by
;; itself, whoever changes it, and keeps point on the same item.

;;; Code:

(require 'tabulated-list)
(require 'contexture)
(eval-when-compile (require 'subr-x))

(defvar view-inhibit-help-message)

(defface contexture-list-pinned '((t :inherit font-lock-keyword-face))
  "Face of the mark of a pinned item."
  :group 'contexture)

(defface contexture-list-stale '((t :inherit warning))
  "Face of an item whose file has changed since it was added."
  :group 'contexture)

(defface contexture-list-missing '((t :inherit error))
  "Face of an item whose file is gone."
  :group 'contexture)

(defconst contexture-list-buffer "*contexture: list*"
  "Name of the buffer that lists a context.")

(defconst contexture-list--item-buffer "*contexture: item*"
  "Name of the buffer that shows one item's text.")

(defvar contexture-list-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-list-visit)
    (define-key map (kbd "SPC") #'contexture-list-show)
    (define-key map "d" #'contexture-list-flag)
    (define-key map "x" #'contexture-list-execute)
    (define-key map "u" #'contexture-list-unflag)
    (define-key map "D" #'contexture-list-remove)
    (define-key map "P" #'contexture-list-pin)
    (define-key map "g" #'contexture-list-refresh)
    (define-key map "U" #'contexture-undo)
    (define-key map [remap undo] #'contexture-undo)
    (define-key map "w" #'contexture-list-copy)
    (define-key map "v" #'contexture-preview)
    (define-key map "S" #'contexture-list-sort)
    (define-key map [mouse-2] #'contexture-list-visit)
    (define-key map [follow-link] 'mouse-face)
    map)
  "Keymap of `contexture-list-mode'.")

(defvar-local contexture-list--items nil
  "The items shown, as plists, the oldest first.")

(defvar-local contexture-list--flagged nil
  "Ids of the items that `contexture-list-execute' will remove.")

(defvar-local contexture-list--updating nil
  "Non-nil while an update is on its way.
The symbol `again' means that the context changed meanwhile.")

;;;; Rows

(defun contexture-list--rows (items now)
  "Return the rows that show ITEMS at the time NOW, in Unix seconds."
  (mapcar (lambda (item) (contexture-list--row item now)) items))

(defun contexture-list--row (item now)
  "Return the row that shows ITEM at the time NOW."
  (let* ((metadata (plist-get item :metadata))
         (state (or (plist-get item :state) :fresh))
         (face (unless (contexture--item-remote-p metadata)
                 (pcase state
                   (:stale 'contexture-list-stale)
                   (:missing 'contexture-list-missing)))))
    (list (plist-get item :id)
          (vector (contexture-list--pin-mark item)
                  (contexture-list--kind item)
                  (propertize (contexture-list--source metadata)
                              'face face 'mouse-face 'highlight)
                  (contexture-list--lines metadata)
                  (contexture-list--tokens (plist-get item :tokens))
                  (contexture-list--seconds
                   (- now (or (plist-get item :timestamp) now)))
                  (propertize (contexture--item-state
                               state metadata (plist-get item :timestamp))
                              'face face)))))

(defun contexture-list--pin-mark (item)
  "Return the mark that shows whether ITEM is pinned."
  (if (plist-get item :pinned) (propertize "*" 'face 'contexture-list-pinned) ""))

(defun contexture-list--kind (item)
  "Return the words for ITEM's type and how it was taken."
  (let ((type (contexture--name (plist-get item :type)))
        (origin (contexture--name (plist-get (plist-get item :metadata) :origin))))
    (if (member origin (list "" type)) type (concat type " " origin))))

(defun contexture-list--source (metadata)
  "Return where METADATA says an item came from, on one line.
A symbol comes first, since a narrow column may cut the rest."
  (let ((symbol (plist-get metadata :symbol))
        (place (contexture--place metadata)))
    (replace-regexp-in-string
     "[\n\t]" " " (if (and symbol (not (equal symbol place)))
                      (format "%s (%s)" symbol place)
                    place))))

(defun contexture-list--lines (metadata)
  "Return the lines in METADATA as text."
  (let ((start (plist-get metadata :start-line))
        (end (plist-get metadata :end-line)))
    (propertize (cond ((null start) "")
                      ((or (null end) (eql start end)) (number-to-string start))
                      (t (format "%d-%d" start end)))
                'number (or start 0))))

(defun contexture-list--tokens (tokens)
  "Return the number TOKENS as text."
  (propertize (if tokens (number-to-string tokens) "?") 'number (or tokens 0)))

(defun contexture-list--seconds (age)
  "Return AGE, in seconds, as text that sorts by it."
  (propertize (contexture-list--age age) 'number age))

(defun contexture-list--age (seconds)
  "Return SECONDS as a short text."
  (cond ((< seconds 60) "now")
        ((< seconds 3600) (format "%dm" (/ seconds 60)))
        ((< seconds 86400) (format "%dh" (/ seconds 3600)))
        (t (format "%dd" (/ seconds 86400)))))

(defun contexture-list--by (column)
  "Return a predicate that sorts rows by the number behind COLUMN's text."
  (cl-flet ((value (row) (let ((cell (aref (cadr row) column)))
                           (if (string-empty-p cell) 0
                             (or (get-text-property 0 'number cell) 0)))))
    (lambda (a b) (< (value a) (value b)))))

(defun contexture-list--header (manager items entry)
  "Return the header line for MANAGER with ITEMS.
ENTRY is what `list-managers' says of it, or nil."
  (let ((tokens (cl-loop for item in items sum (or (plist-get item :tokens) 0)))
        (capacity (plist-get entry :max-items)))
    (format " %s: %s%s, %s" (contexture--capitalized (contexture--label manager))
            (contexture--count (length items) "item")
            (if capacity (format " of at most %d" capacity) "")
            (contexture--count tokens "token"))))

(defun contexture-list--format (width)
  "Return the columns for a window of WIDTH; the source gets what is left."
  (vector '("" 1 nil)
          '("Type" 13 t)
          (list "Source" (max 20 (- width 52)) t)
          (list "Lines" 10 (contexture-list--by 3))
          (list "Tokens" 7 (contexture-list--by 4) :right-align t)
          (list "Age" 4 (contexture-list--by 5))
          '("State" 7 t)))

;;;; The list

(define-derived-mode contexture-list-mode tabulated-list-mode "Contexture"
  "Major mode for the items of one context, the oldest first.

RET visits an item's source and SPC shows its text.  `d' flags an item
for removal and `x' removes what is flagged; every change can be
undone with `U'.

\\{contexture-list-mode-map}"
  (setq tabulated-list-format (contexture-list--format (window-width))
        tabulated-list-padding 2
        tabulated-list-use-header-line nil
        revert-buffer-function #'contexture-list-refresh)
  (add-hook 'kill-buffer-hook #'contexture-list--unwatch nil t)
  (tabulated-list-init-header))

;;;###autoload
(defun contexture-list (manager)
  "List the items of the context named MANAGER.
That is this buffer's; with a prefix argument, choose one."
  (interactive (list (contexture--manager-to-show current-prefix-arg)))
  (let ((buffer (get-buffer-create contexture-list-buffer)))
    (with-current-buffer buffer
      (unless (derived-mode-p 'contexture-list-mode)
        (contexture-list-mode))
      (unless (equal manager contexture-manager)
        (setq contexture-manager manager
              contexture-list--flagged nil)
        (contexture-list--show nil nil))
      (contexture-list--watch)
      (contexture-list--update))
    (pop-to-buffer buffer)))

(defun contexture-list--show (items entry)
  "Show ITEMS in this buffer; ENTRY is what is known of their context."
  (let ((inhibit-read-only t)
        ;; Of 255 ms for a thousand items, 220 are collections of garbage.
        (gc-cons-threshold (max gc-cons-threshold (* 64 1024 1024))))
    (setq contexture-list--items items
          tabulated-list-entries (contexture-list--rows
                                  items (truncate (float-time)))
          contexture-list--flagged
          (cl-intersection contexture-list--flagged
                           (mapcar #'car tabulated-list-entries) :test #'equal)
          header-line-format
          (replace-regexp-in-string
           "%" "%%" (contexture-list--header contexture-manager items entry)))
    (let ((places (contexture-list--places)))
      (tabulated-list-print)
      (contexture-list--show-flags)
      (mapc #'contexture-list--restore-place places))))

(defun contexture-list--places ()
  "Return where point is, here and in each window, as (WINDOW ID LINE)."
  (cl-loop for window in (cons nil (get-buffer-window-list nil nil t))
           for position = (if window (window-point window) (point))
           collect (list window (tabulated-list-get-id position)
                         (line-number-at-pos position))))

(defun contexture-list--restore-place (place)
  "Put point where PLACE, from `contexture-list--places', says.
That is on the same item, or if it is gone, on the same line."
  (pcase-let* ((`(,window ,id ,line) place)
               (position (or (and id (contexture-list--find id))
                             (save-excursion
                               (goto-char (point-min))
                               (forward-line (max 1 (1- line)))
                               (when (and (eobp) (> line 2)) (forward-line -1))
                               (point)))))
    (if window
        (set-window-point window position)
      (goto-char position))))

(defun contexture-list--find (id)
  "Return the position of the row of the item ID, or nil."
  (save-excursion
    (goto-char (point-min))
    (while (not (or (eobp) (equal (tabulated-list-get-id) id)))
      (forward-line))
    (unless (eobp) (point))))

(defun contexture-list--show-flags ()
  "Mark the rows of the flagged items."
  (dolist (id contexture-list--flagged)
    (when-let ((position (contexture-list--find id)))
      (save-excursion
        (goto-char position)
        (tabulated-list-put-tag "D")))))

;;;; Following the context

(defun contexture-list--watch ()
  "Have this buffer follow its context."
  (contexture-watch #'contexture-list--changed)
  (add-hook 'contexture-connected-hook #'contexture-list--update-buffer))

(defun contexture-list--unwatch ()
  "Undo what `contexture-list--watch' did."
  (contexture-unwatch #'contexture-list--changed)
  (remove-hook 'contexture-connected-hook #'contexture-list--update-buffer))

(defun contexture-list--changed (method params)
  "Update the list if METHOD and PARAMS tell that its context changed."
  (when (and (eq method 'context-changed)
             (equal (plist-get params :manager)
                    (when-let ((buffer (get-buffer contexture-list-buffer)))
                      (buffer-local-value 'contexture-manager buffer))))
    (contexture-list--update-buffer)))

(defun contexture-list--update-buffer ()
  "Update the list from wherever it is called."
  (when-let ((buffer (get-buffer contexture-list-buffer)))
    (with-current-buffer buffer
      (contexture-list--update))))

(defun contexture-list--update ()
  "Fetch this list's items and show them.
While an update is on its way, changes are only noted, so that a burst
of them costs two updates."
  (if contexture-list--updating
      (setq contexture-list--updating 'again)
    (setq contexture-list--updating t)
    (let ((buffer (current-buffer))
          (manager contexture-manager)
          entry)
      (contexture-request-async
       'list-managers nil
       :success (lambda (all)
                  (setq entry (cl-find manager all :test #'equal
                                       :key (lambda (it) (plist-get it :manager))))))
      (contexture-request-async
       'get-context (list :manager manager :brief t)
       :success (lambda (items)
                  (contexture-list--updated buffer manager items entry))
       :error (lambda (problem)
                (contexture-show-error problem)
                (contexture-list--updated buffer nil nil nil))))))

(defun contexture-list--updated (buffer manager items entry)
  "Show in BUFFER the ITEMS and ENTRY that were fetched for MANAGER."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (when (equal manager contexture-manager)
        (contexture-list--show items entry))
      (let ((again (or (eq contexture-list--updating 'again)
                       (and manager (not (equal manager contexture-manager))))))
        (setq contexture-list--updating nil)
        (when again (contexture-list--update))))))

;;;; Commands

(defun contexture-list--item ()
  "Return the item at point."
  (or (let ((id (tabulated-list-get-id)))
        (and id (cl-find id contexture-list--items
                         :key (lambda (item) (plist-get item :id))
                         :test #'equal)))
      (user-error "There is no item here")))

(defun contexture-list--ids ()
  "Return the ids of the items in the region, or of the one at point."
  (if (use-region-p)
      (let ((end (region-end)))
        (save-excursion
          (goto-char (region-beginning))
          (cl-loop while (< (point) end)
                   when (tabulated-list-get-id) collect it
                   do (forward-line))))
    (list (plist-get (contexture-list--item) :id))))

(defun contexture-list--change (method &rest params)
  "Call METHOD with PARAMS on this list's context, then show the result."
  (apply #'contexture-list--change-and #'ignore method params))

(defun contexture-list--change-and (tell method &rest params)
  "Call METHOD with PARAMS on this list's context, show it, and TELL.
TELL is called with the result."
  (let ((buffer (current-buffer)))
    (contexture-request-async
     method (append (list :manager contexture-manager) params)
     :success (lambda (result)
                (when (buffer-live-p buffer)
                  (with-current-buffer buffer
                    (contexture-list--update)))
                (funcall tell result)))))

(defun contexture-list-refresh (&rest _)
  "Read the files of this context again and update the list.
Items whose text moved in their file are found again; those whose file
is gone are shown as missing."
  (interactive)
  (contexture-list--change-and #'contexture-list--tell-refreshed 'refresh-context))

(defun contexture-list--tell-refreshed (result)
  "Tell what RESULT of `refresh-context' says."
  (let* ((items (plist-get result :items))
         (stale (cl-count :stale items :key (lambda (it) (plist-get it :outcome))))
         (missing (cl-count :missing items
                            :key (lambda (it) (plist-get it :outcome)))))
    (message "%s read again%s%s"
             (contexture--count (plist-get result :updated) "item")
             (if (> stale 0) (format "; %d could not be found in the file" stale) "")
             (if (> missing 0) (format "; the file of %d is gone" missing) ""))))

(defun contexture-list-sort (column)
  "Sort the list by COLUMN, the one at point or one that you choose.
The same column again reverses the order."
  (interactive
   (list (or (get-text-property (point) 'tabulated-list-column-name)
             (completing-read "Sort by: "
                              (remove "" (mapcar #'car tabulated-list-format))
                              nil t))))
  (tabulated-list-sort (cl-position column tabulated-list-format
                                    :key #'car :test #'equal)))

(defun contexture-list-flag ()
  "Flag the item at point, or those in the region, for removal."
  (interactive)
  (contexture-list--tag (contexture-list--ids) t))

(defun contexture-list-unflag ()
  "Remove the flag of the item at point, or of those in the region."
  (interactive)
  (contexture-list--tag (contexture-list--ids) nil))

(defun contexture-list--tag (ids flagged)
  "Make the items IDS be FLAGGED or not, and go to the next line."
  (setq contexture-list--flagged
        (if flagged (cl-union contexture-list--flagged ids :test #'equal)
          (cl-set-difference contexture-list--flagged ids :test #'equal)))
  (save-excursion
    (dolist (id ids)
      (goto-char (contexture-list--find id))
      (tabulated-list-put-tag (if flagged "D" " "))))
  (if (use-region-p)
      (setq deactivate-mark t)
    (forward-line)))

(defun contexture-list-execute ()
  "Remove the flagged items.  `contexture-undo' brings them back."
  (interactive)
  (unless contexture-list--flagged
    (user-error "No item is flagged; `d' flags one"))
  (contexture-list--remove contexture-list--flagged))

(defun contexture-list-remove ()
  "Remove the item at point, or those in the region, at once."
  (interactive)
  (contexture-list--remove (contexture-list--ids))
  (setq deactivate-mark t))

(defun contexture-list--remove (ids)
  "Remove the items IDS and say how to bring them back."
  (contexture-list--change 'remove-context :ids ids)
  (message "Removed %s; %s undoes it"
           (contexture--count (length ids) "item")
           (substitute-command-keys "\\[contexture-undo]")))

(defun contexture-list-pin ()
  "Pin the item at point, so that it is never pushed out, or unpin it."
  (interactive)
  (let ((item (contexture-list--item)))
    (contexture-list--change 'pin-context :id (plist-get item :id)
                             :pinned (not (plist-get item :pinned)))))

(defun contexture-list-copy ()
  "Copy the text of the item at point."
  (interactive)
  (let ((text (contexture-list--content (contexture-list--item))))
    (kill-new text)
    (message "Copied %s" (contexture--count (length text) "character"))))

(defun contexture-list--content (item)
  "Return the whole text of ITEM."
  (or (plist-get item :content)
      (let ((found (cl-find (plist-get item :id)
                            (contexture--ask 'get-context
                                             (list :manager contexture-manager))
                            :key (lambda (other) (plist-get other :id))
                            :test #'equal)))
        (or (plist-get found :content)
            (user-error "The item is gone")))))

(defun contexture-list-visit ()
  "Go to where the item at point came from.
If that is gone, show the item's text instead."
  (interactive)
  (let* ((item (contexture-list--item))
         (metadata (plist-get item :metadata))
         (buffer (contexture-list--source-buffer metadata)))
    (if (null buffer)
        (progn (contexture-list-show)
               (message "%s is gone; this is the text that was taken from it"
                        (contexture--place metadata)))
      (pop-to-buffer buffer)
      (when-let ((line (plist-get metadata :start-line)))
        (contexture-list--go-to-line line)))))

(defun contexture-list--source-buffer (metadata)
  "Return a buffer with the file, or else the buffer, METADATA names, or nil."
  (let ((file (plist-get metadata :filename))
        (buffer (plist-get metadata :buffer)))
    (cond ((and file (file-exists-p file)) (find-file-noselect file))
          (file (find-buffer-visiting file))
          (buffer (get-buffer buffer)))))

(defun contexture-list--go-to-line (line)
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
  (let* ((item (contexture-list--item))
         (metadata (plist-get item :metadata))
         (text (contexture-list--content item))
         (mode (contexture-list--mode
                (or (plist-get metadata :mode)
                    (contexture--file-mode
                     (or (plist-get metadata :filename) ""))))))
    (with-current-buffer (get-buffer-create contexture-list--item-buffer)
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert text)
        (goto-char (point-min))
        (delay-mode-hooks (funcall mode))
        (ignore-errors (font-lock-ensure)))
      (setq header-line-format
            (replace-regexp-in-string
             "%" "%%" (concat " " (contexture--source metadata))))
      (set-buffer-modified-p nil)
      (setq-local view-inhibit-help-message t)
      (view-mode-enter nil #'ignore)
      (display-buffer (current-buffer)))))

(defun contexture-list--mode (name)
  "Return the major mode called NAME if it is fit to show a text."
  (let ((mode (and (stringp name) (intern-soft name))))
    (if (and mode (fboundp mode)
             (provided-mode-derived-p mode 'prog-mode 'text-mode 'conf-mode))
        mode
      #'fundamental-mode)))

(provide 'contexture-list)
;;; contexture-list.el ends here
