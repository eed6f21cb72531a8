;;; contexture-list-draw.el --- Draw a list of items  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Draws the items of a list.  Only lines that changed are redrawn, so
;; marks, point and the windows stay in place, and a change of one item
;; among a thousand costs little.  This file knows neither the server nor
;; any command.

;;; Code:

(require 'tabulated-list)
(require 'contexture-list-rows)
(eval-when-compile (require 'subr-x))

(defface contexture-list-marked '((t :inherit font-lock-constant-face))
  "Face of the mark of an item that the next command applies to."
  :group 'contexture)

(defface contexture-list-flagged '((t :inherit error))
  "Face of the flag of an item to be removed."
  :group 'contexture)

(defvar-local contexture-list--items nil
  "The items of the context as plists, the oldest first.")

(defvar-local contexture-list--capacity nil
  "Capacity of the context in items, or nil if unknown.")

(defvar-local contexture-list--rows nil
  "Drawn rows from top to bottom: pairs of an item's id and its line.")

(defvar-local contexture-list--made nil
  "Cache of the rows of the items shown.
The car is what the rows depend on: the minute, the columns and what
agents have.  The cdr is a hash table from an item to its row and its
pair of id and line.")

(defvar-local contexture-list--width nil
  "Width of the window that the columns were computed for.")

(defvar-local contexture-list--sent nil
  "Table of what agents have, if the items have a column for it, or nil.
It is the value of `contexture-agents--table'.")

(defvar-local contexture-list--dated nil
  "Non-nil if the columns have room for the dates of states.")

(defvar-local contexture-list--filters nil
  "Filters on the items shown, an alist from a kind to its value.")

(defvar-local contexture-list--tags nil
  "Hash table from an item's id to its mark, a character.")

(defvar-local contexture-list--loaded nil
  "Non-nil once the items have been fetched.")

(defvar contexture-agents--table)

(defvar-local contexture-list--conversation nil
  "Conversation that sends this context, as (ID . NAME), or nil.")

;;;; Drawing

(defun contexture-list--draw ()
  "Show the items, redrawing only what changed."
  (contexture-list--follow-conversation)
  (let ((inhibit-read-only t)
        ;; Garbage collection took 220 of 255 ms for a thousand items.
        (gc-cons-threshold (max gc-cons-threshold (* 64 1024 1024)))
        (items (contexture-list--shown-items)))
    (contexture-list--drop-tags)
    (contexture-list--draw-header)
    (contexture-list--draw-heading)
    (contexture-list--draw-rows (contexture-list--make-rows items))
    (set-buffer-modified-p nil)))

(defun contexture-list--draw-header ()
  "Show the size of the context, and what its conversation would send."
  (setq header-line-format
        (if contexture-list--loaded
            (contexture-list--header contexture-manager contexture-list--items
                                     contexture-list--capacity
                                     (length (contexture-list--shown-items))
                                     contexture-list--filters)
          (contexture-list--header-before contexture-manager))))

(defun contexture-list--follow-conversation ()
  "Find the conversation that sends this context, and follow its count."
  (let ((entry (contexture-count--conversation-of contexture-manager)))
    (setq contexture-list--conversation entry)
    (if entry
        (contexture-count--follow (car entry) (current-buffer)
                                 #'contexture-list--draw-header)
      (contexture-count--unfollow (current-buffer)))))

(defun contexture-list--shown-items ()
  "Return the items to show, in display order."
  (contexture-list--sort
   (if (null contexture-list--filters)
       contexture-list--items
     (cl-remove-if-not (lambda (item)
                         (contexture-list--passes-p item contexture-list--filters))
                       contexture-list--items))
   tabulated-list-sort-key))

(defun contexture-list--make-rows (items)
  "Return pairs of id and line for ITEMS, or one pair with a remark if none.
Items that were drawn in this minute keep their lines."
  (let* ((now (truncate (float-time)))
         (key (list (/ now 60) tabulated-list-format contexture-list--sent))
         (known (if (equal key (car contexture-list--made))
                    (cdr contexture-list--made)
                  (make-hash-table :test #'eq)))
         (made (make-hash-table :test #'eq :size (length items)))
         (template (contexture-list--template tabulated-list-format)))
    (setq tabulated-list-entries
          (mapcar (lambda (item)
                    (car (puthash item
                                  (or (gethash item known)
                                      (contexture-list--make-row item now template))
                                  made)))
                  items)
          contexture-list--made (cons key made))
    (or (cl-loop with layer = nil
                 for item in items
                 for manager = (plist-get item :manager)
                 unless (or tabulated-list-sort-key (equal manager layer))
                 collect (contexture-list--section (setq layer manager) items)
                 collect (cdr (gethash item made)))
        (list (cons nil (contexture-list--remark))))))

(defun contexture-list--section (manager items)
  "Return the row that begins the section of MANAGER, with its part of ITEMS."
  (let ((own (cl-remove-if-not (lambda (item)
                                 (equal (plist-get item :manager) manager))
                               items)))
    (cons nil
          (propertize
           (format "  %s (%s)\n"
                   (contexture--capitalized (contexture--label manager))
                   (contexture--size
                    (length own)
                    (apply #'+ (mapcar (lambda (item) (or (plist-get item :tokens) 0))
                                       own))))
           'face 'bold))))

(defun contexture-list--make-row (item now template)
  "Return the row of ITEM at the time NOW, and its id and line.
TEMPLATE is the format string of the line."
  (let ((row (contexture-list--row item now contexture-list--sent)))
    (cons row (cons (car row)
                    (contexture-list--line row tabulated-list-format template)))))

(defun contexture-list--remark ()
  "Return the line to show when there are no items."
  (concat "  "
          (cond ((not contexture-list--loaded) "")
                (contexture-list--items
                 (substitute-command-keys
                  "(no item passes the filters; \\[contexture-list-unfilter] \
removes them)"))
                (t (substitute-command-keys
                    "(no items yet; \\[contexture-add-dwim] in a buffer adds some)")))
          "\n"))

(defun contexture-list--draw-heading ()
  "Draw the column headings on the first line, if they changed."
  (let ((width (window-width (get-buffer-window nil t)))
        (dated (and (cl-some #'contexture-list--dated-p contexture-list--items) t))
        (sent (contexture-list--sent-table)))
    (unless (and (eql width contexture-list--width)
                 (eq dated contexture-list--dated)
                 (eq (null sent) (null contexture-list--sent)))
      (setq contexture-list--width width
            contexture-list--dated dated
            tabulated-list-format (contexture-list--format width dated sent)))
    (setq contexture-list--sent sent))
  (let ((heading (contexture-list--heading tabulated-list-format
                                           tabulated-list-sort-key))
        (new (= (point-min) (point-max))))
    (save-excursion
      (goto-char (point-min))
      (unless (equal heading (buffer-substring-no-properties
                              (point) (line-beginning-position 2)))
        ;; Insert the new heading before deleting the old one, so that point
        ;; stays below both.
        (insert heading)
        (add-face-text-property (point-min) (point) 'tabulated-list-fake-header t)
        (delete-region (point) (line-beginning-position 2))))
    (when new
      (setq contexture-list--rows nil)
      (goto-char (point-max)))))

(defun contexture-list--sent-table ()
  "Return what agents have, if they have any of the items, or nil."
  (and contexture-agents--table
       (cl-some (lambda (item)
                  (gethash (plist-get item :id) contexture-agents--table))
                contexture-list--items)
       contexture-agents--table))

(defun contexture-list--draw-rows (rows)
  "Replace the lines below the heading with those of ROWS.
Unchanged lines at the beginning and the end are not touched, and each
window stays on its items."
  (let* ((old contexture-list--rows)
         (places (contexture-list--places))
         (same (contexture-list--same old rows))
         (same-tail (contexture-list--same (reverse (nthcdr same old))
                                           (reverse (nthcdr same rows))))
         (fresh (butlast (nthcdr same rows) same-tail))
         (deleted (- (length old) same same-tail)))
    (setq contexture-list--rows rows)
    (when (or fresh (> deleted 0))
      (save-excursion
        (goto-char (contexture-list--row-position same))
        (delete-region (point) (line-beginning-position (1+ deleted)))
        (insert (mapconcat #'cdr fresh "")))
      (contexture-list--show-tags fresh same)
      (mapc #'contexture-list--restore-place places))))

(defun contexture-list--same (a b)
  "Return the length of the common prefix of the lists A and B."
  (let ((count 0))
    (while (and a b (equal (car a) (car b)))
      (cl-incf count)
      (setq a (cdr a) b (cdr b)))
    count))

(defun contexture-list--row-position (number)
  "Return the position where row NUMBER, counted from 0, begins."
  (save-excursion
    (goto-char (point-min))
    (forward-line (1+ number))
    (point)))

(defun contexture-list--places ()
  "Return the places of point and of the top of each window.
Each place is a list (WINDOW ID LINE COLUMN START-ID START-LINE);
WINDOW is nil for point itself."
  (cl-loop for window in (cons nil (get-buffer-window-list nil nil t))
           collect (save-excursion
                     (when window (goto-char (window-point window)))
                     `(,window ,(tabulated-list-get-id) ,(line-number-at-pos)
                               ,(current-column)
                               ,@(when window
                                   (goto-char (window-start window))
                                   (list (tabulated-list-get-id)
                                         (line-number-at-pos)))))))

(defun contexture-list--restore-place (place)
  "Restore PLACE, an element of the value of `contexture-list--places'.
Point, and the top of its window if it has one, return to the same item
or, if that item is gone, to the same line."
  (pcase-let* ((`(,window ,id ,line ,column ,start-id ,start-line) place)
               (position (contexture-list--place-position id line column)))
    (if (null window)
        (goto-char position)
      (set-window-point window position)
      (set-window-start window (contexture-list--place-position
                                start-id start-line 0)
                        t))))

(defun contexture-list--place-position (id line column)
  "Return the position of COLUMN of the item ID, or else of LINE."
  (save-excursion
    (goto-char (or (and id (contexture-list--find id)) (point-min)))
    (when (bobp)
      (forward-line (1- line))
      (when (and (eobp) (> line 2)) (forward-line -1)))
    (move-to-column column)
    (point)))

(defun contexture-list--find (id)
  "Return the position of the row of the item ID, or nil."
  (when-let* ((number (cl-position id contexture-list--rows
                                   :key #'car :test #'equal)))
    (contexture-list--row-position number)))

(defun contexture-list--resized (window)
  "Fit the columns to WINDOW, which shows this list."
  (with-current-buffer (window-buffer window)
    (unless (eql contexture-list--width
                 (window-width (get-buffer-window nil t)))
      (contexture-list--draw))))

;;;; Marks

(defun contexture-list--show-tags (rows number)
  "Show the marks of ROWS, the first of which is row NUMBER."
  (unless (zerop (hash-table-count contexture-list--tags))
    (save-excursion
      (goto-char (contexture-list--row-position number))
      (dolist (row rows)
        (when-let* ((tag (gethash (car row) contexture-list--tags)))
          (contexture-list--put-tag tag))
        (forward-line)))))

(defun contexture-list--put-tag (tag)
  "Show the mark TAG, a character or nil, on this line."
  (tabulated-list-put-tag
   (pcase tag
     (?D (propertize "D" 'face 'contexture-list-flagged))
     ('nil " ")
     (_ (propertize (char-to-string tag) 'face 'contexture-list-marked)))))

(defun contexture-list--drop-tags ()
  "Forget the marks of items that left the context."
  (unless (zerop (hash-table-count contexture-list--tags))
    (let ((ids (mapcar (lambda (item) (plist-get item :id))
                       contexture-list--items)))
      (maphash (lambda (id _)
                 (unless (member id ids) (remhash id contexture-list--tags)))
               contexture-list--tags))))

(defun contexture-list--tagged (tag)
  "Return the ids of the items shown that have the mark TAG."
  (cl-loop for (id . _) in contexture-list--rows
           when (eql tag (gethash id contexture-list--tags)) collect id))

(defun contexture-list--tag (ids tag)
  "Give the items IDS the mark TAG, a character or nil."
  (dolist (id ids)
    (if tag (puthash id tag contexture-list--tags)
      (remhash id contexture-list--tags))
    (when-let* ((position (contexture-list--find id)))
      (save-excursion
        (goto-char position)
        (contexture-list--put-tag tag))))
  (set-buffer-modified-p nil))

(provide 'contexture-list-draw)
;;; contexture-list-draw.el ends here
