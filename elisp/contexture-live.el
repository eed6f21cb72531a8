;;; contexture-live.el --- Items that follow what you type  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A live item has the text that its source has now.  The server reads
;; files; this file tells it what is in buffers.  Each live item of a
;; buffer has an overlay that follows the edits, with `contexture-mode' or
;; without.  What changed goes to the server in one call: after a pause in
;; typing, and before each call that shows or sends items.  A connection's
;; calls begin in order, so nothing waits for the answer.
;;
;; No code runs after each command.  Whether a buffer changed is seen from
;; the count of its changes.
;;
;; An overlay is placed only on the text that the item has.  Where that is
;; not certain, the item stays as it is, and the server follows its file.

;;; Code:

(require 'cl-lib)
(require 'contexture)
(require 'contexture-overlay)
(eval-when-compile (require 'subr-x))

;; These are called only on a connection, so after that file is loaded.
(declare-function contexture--call-method "contexture-connection" t t)
(declare-function contexture--unanswered-calls "contexture-connection" (connection))

(autoload 'contexture-live--reverted "contexture-live-place")
(autoload 'contexture-live--killed "contexture-live-place")
(autoload 'contexture-live--renamed "contexture-live-place")

(defcustom contexture-live-delay 0.5
  "Seconds without input after which the server is told what you typed.
Whatever shows or sends items tells it before, too."
  :type 'number
  :group 'contexture)

(cl-defstruct (contexture-live--item (:constructor contexture-live--make-item)
                                     (:copier nil))
  "A live item of a buffer.
OVERLAY is over its text; it is nil for a whole buffer, and `none' until
the item has a place.  TOLD is what the server knows, as
`contexture-live--state' returns it, and SAVED the last such state that
was saved."
  id manager overlay told saved)

(defvar-local contexture-live--items nil
  "Live items of this buffer, structures of type `contexture-live--item'.")

(defvar-local contexture-live--seen nil
  "Sign of the state of this buffer that the server was told last.")

(defvar-local contexture-live--new nil
  "Items of this buffer that got their places after `contexture-live--seen'.")

(defvar-local contexture-live--file nil
  "File that this buffer visited when its items were placed.")

(dolist (variable '(contexture-live--items contexture-live--seen contexture-live--new
                    contexture-live--file))
  (put variable 'permanent-local t))
(dolist (hook '(contexture-live--reverted contexture-live--killed contexture-live--renamed))
  (put hook 'permanent-local-hook t))

(defvar contexture-live--buffers nil
  "Buffers with live items.")

(defvar contexture-live--places (make-hash-table :test #'equal)
  "Hash table from the id of each live item of a buffer to (BUFFER . ITEM).")

(defvar contexture-live--timer nil
  "Idle timer that tells the server what changed, or nil.")

;;;; What a buffer has now

(defun contexture-live--held-p ()
  "Return why the server cannot find this buffer's text in its file, or nil.
The value is `unsaved', or `form' if the file has the text in another
form, as one on another machine, a compressed one and one in another
encoding than UTF-8."
  (with-current-buffer (or (buffer-base-buffer) (current-buffer))
    (cond ((buffer-modified-p) 'unsaved)
          ((not (contexture-live--plain-p)) 'form))))

(defun contexture-live--plain-p ()
  "Return non-nil if the file of this buffer has its text as UTF-8."
  (and (not (find-file-name-handler buffer-file-name 'insert-file-contents))
       (null buffer-file-format)
       (or (null buffer-file-coding-system)
           (memq (coding-system-type buffer-file-coding-system) '(utf-8 undecided))
           (eq (coding-system-base buffer-file-coding-system) 'us-ascii))))

(defun contexture-live--sign ()
  "Return what changes whenever the server has to be told of this buffer."
  (cons (buffer-chars-modified-tick) (contexture-live--held-p)))

(defun contexture-live--state (item held from)
  "Return the state of ITEM in this buffer, which is widened.
It is a list (TEXT LINES HELD LOST).  LINES is a pair, or nil for a whole
buffer, and LOST the reason why TEXT, the last known, is not there.  FROM
is a pair of a position before ITEM and its line, which is moved to ITEM."
  (let* ((overlay (contexture-live--item-overlay item))
         (lost (and overlay (contexture-live--lost item overlay))))
    (cond ((null overlay)
           (list (buffer-substring-no-properties (point-min) (point-max)) nil held nil))
          (lost (pcase-let ((`(,text ,lines) (contexture-live--item-told item)))
                  (list text lines held lost)))
          (t
           (let ((beg (overlay-start overlay)) (end (overlay-end overlay)))
             (list (buffer-substring-no-properties beg end)
                   (contexture-live--lines beg end from)
                   held nil))))))

(defun contexture-live--lost (item overlay)
  "Return why the OVERLAY of ITEM has no text in this buffer, or nil.
Text that is back in its place, or once somewhere else, is found."
  (let ((place (overlay-start overlay)))
    (cond ((null place)
           (unless (contexture-live--revive item overlay (point-min))
             "its place in the buffer is lost"))
          ((= place (overlay-end overlay))
           (unless (contexture-live--revive item overlay place)
             "deleted in the buffer"))
          (t (contexture-overlay--cover-lines overlay) nil))))

(defun contexture-live--revive (item overlay place)
  "Put OVERLAY of ITEM on its last text if that is at PLACE or once elsewhere.
Return non-nil on success."
  (when-let* ((text (or (car (contexture-live--item-told item))
                        (car (contexture-live--item-saved item))))
              (bounds (contexture-live--find
                       text place (overlay-get overlay 'contexture-partial))))
    (move-overlay overlay (car bounds) (cdr bounds) (current-buffer))))

(defun contexture-live--find (text place &optional partial)
  "Return the bounds of TEXT at PLACE, or where it is once in this buffer.
It begins a line unless PARTIAL is non-nil.  The buffer must be widened."
  (unless (string-blank-p text)
    (let ((pattern (concat (unless partial "^") (regexp-quote text)))
          (case-fold-search nil))
      (if (contexture-live--at-p text place)
          (cons place (+ place (length text)))
        (save-excursion
          (goto-char (point-min))
          (when (re-search-forward pattern nil t)
            (let ((beg (match-beginning 0)) (end (point)))
              (goto-char (1+ beg))
              (unless (re-search-forward pattern nil t)
                (cons beg end)))))))))

(defun contexture-live--at-p (text place)
  "Return non-nil if TEXT is at PLACE in this buffer."
  (let ((end (+ place (length text))))
    (and (<= end (point-max))
         (string= text (buffer-substring-no-properties place end)))))

(defun contexture-live--lines (beg end from)
  "Return the first and last line of the text from BEG to END, as a pair.
FROM is a pair of a position that is not after BEG and its line; move it
to BEG, so that all lines of a buffer are counted once."
  (setcdr from (+ (cdr from) (contexture-live--newlines (car from) beg)))
  (setcar from beg)
  (let ((last (if (and (> end beg) (eq (char-before end) ?\n)) (1- end) end)))
    (cons (cdr from) (+ (cdr from) (contexture-live--newlines beg last)))))

(defun contexture-live--newlines (beg end)
  "Return the number of newlines between BEG and END."
  (save-restriction
    (narrow-to-region beg end)
    (1- (line-number-at-pos end))))

;;;; Telling the server

(defun contexture-live--push ()
  "Tell the server, in one call, what changed in buffers with live items.
This does not wait for the answer.  A server that cannot be reached is
told when it is back."
  (when (and contexture-live--buffers (contexture-running-p))
    (with-demoted-errors "Contexture: %S"
      (contexture-live--tell (contexture-live--changes)))))

(defconst contexture-live--patience 2
  "Maximum number of seconds to wait until the server knows what changed.")

(defun contexture-live--push-and-wait ()
  "Tell the server what changed, and wait until it knows.
This is for what reaches the server on another connection than Emacs's
own, such as the input of a REPL.  If the server does not answer in time,
say so and go on."
  (contexture-live--push)
  (condition-case nil
      (when (contexture-running-p)
        (contexture--wait contexture--connection contexture-live--patience
                          (lambda () (not (contexture-live--telling-p)))))
    (contexture-error
     (contexture--message "Contexture: the server does not answer, so the model may \
get the text from before your last edits"))))

(defun contexture-live--telling-p ()
  "Return non-nil if the server was told of changes and has not answered."
  (and (contexture-running-p)
       (cl-find "update-items" (contexture--unanswered-calls contexture--connection)
                :key #'contexture--call-method :test #'equal)))

(defun contexture-live--tell (updates)
  "Send UPDATES of items, in one call.
They are never sent again, since there may be newer ones then."
  (when (and updates (contexture-running-p))
    (let ((contexture--own-call t))
      (contexture-request-async
       'update-items (list :items updates)
       :success (lambda (result)
                  (mapc #'contexture-live--forget-item
                        (plist-get result :skipped)))))))

(defun contexture-live--resume (same)
  "Tell a server that was just reached all about the items of buffers.
If it is not the SAME server with the same state, ids mean other items
there: let no item follow a buffer."
  (dolist (buffer contexture-live--buffers)
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (if (not same)
            (contexture-live--release)
          (setq contexture-live--seen nil)
          (dolist (item contexture-live--items)
            (let ((told (contexture-live--item-told item)))
              (setf (contexture-live--item-told item)
                    (list (car told) (nth 1 told) 'unknown (nth 3 told)))))))))
  (contexture-live--push))

(defun contexture-live--changes ()
  "Return the updates of all items that changed, and record them as told."
  (cl-loop for buffer in contexture-live--buffers
           when (buffer-live-p buffer)
           nconc (with-current-buffer buffer
                   (let* ((sign (contexture-live--sign))
                          (items (if (equal sign contexture-live--seen)
                                     contexture-live--new
                                   contexture-live--items)))
                     (setq contexture-live--seen sign
                           contexture-live--new nil)
                     (and items
                          (contexture-live--changes-here items (cdr sign)))))))

(defun contexture-live--changes-here (items held)
  "Return the updates of those of ITEMS, of this buffer, that changed.
HELD is non-nil if the file does not count."
  (save-excursion
    (save-restriction
      (widen)
      (let ((from (cons (point-min) 1)))
        (delq nil
              (mapcar (lambda (item)
                        (contexture-live--change
                         item (contexture-live--state item held from)))
                      (contexture-live--in-order items)))))))

(defun contexture-live--in-order (items)
  "Return those of ITEMS that have a place, by their beginnings."
  (cl-flet ((start (item)
              (let ((overlay (contexture-live--item-overlay item)))
                (or (and overlay (overlay-start overlay)) 0))))
    (sort (cl-remove 'none (copy-sequence items)
                     :key #'contexture-live--item-overlay)
          (lambda (a b) (< (start a) (start b))))))

(defun contexture-live--change (item state)
  "Return the update that tells that ITEM has STATE, or nil if it is known.
The text is left out if only the lines are others."
  (let ((told (contexture-live--item-told item)))
    (unless (equal told state)
      (setf (contexture-live--item-told item) state)
      (unless (or (nth 2 state) (nth 3 state))
        (setf (contexture-live--item-saved item) state))
      (contexture-live--update
       item state
       (not (and (equal (car told) (car state)) (equal (cddr told) (cddr state))))
       (and (null told) contexture-live--file)))))

(defun contexture-live--update (item state whole &optional file)
  "Return the update that gives ITEM the STATE, with its text if WHOLE.
FILE is the name of its file if that is new."
  (pcase-let ((`(,text ,lines ,held ,lost) state))
    `(:id ,(contexture-live--item-id item)
      :manager ,(contexture-live--item-manager item)
      ,@(and whole text (not lost) (list :content text))
      :metadata (,@(and lines (list :start-line (car lines) :end-line (cdr lines)))
                 :unsaved ,(and held t) :modified ,(eq held 'unsaved)
                 ,@(and lost (list :stale lost))
                 ,@(and file (list :filename file))))))

;;;; Buffers with items

(defun contexture-live--track (id manager told &optional place)
  "Let the item ID of MANAGER follow this buffer, which is no indirect one.
TOLD is what the server knows of it.  PLACE is a list (BEG END PARTIAL),
or nil for a whole buffer."
  (let* ((known (contexture-live--find-item id))
         (item (if (eq (car known) (current-buffer)) (cdr known)
                 (contexture-live--forget-item id)
                 (contexture-live--make-item :id id))))
    (setf (contexture-live--item-manager item) manager
          (contexture-live--item-told item) told)
    (when (and (car told) (not (nth 2 told)) (not (nth 3 told)))
      (setf (contexture-live--item-saved item) told))
    (contexture-live--put item place)
    (cl-pushnew item contexture-live--items)
    (cl-pushnew item contexture-live--new)
    (puthash id (cons (current-buffer) item) contexture-live--places)
    (setq contexture-live--file (expand-file-name buffer-file-name))
    (contexture-live--join)))

(defun contexture-live--put (item place)
  "Put the overlay of ITEM at PLACE, as in `contexture-live--track'.
It stays the same overlay, which may be a mark too."
  (pcase-let ((overlay (contexture-live--item-overlay item))
              (`(,beg ,end ,partial) place))
    (cond ((and place (overlayp overlay))
           (move-overlay overlay beg end (current-buffer)))
          (t (contexture-live--drop-overlay item)
             (setf (contexture-live--item-overlay item)
                   (when place
                     (setq overlay (contexture-overlay--make beg end (and partial t)))
                     (overlay-put overlay 'contexture-live t)
                     overlay))))))

(defun contexture-live--join ()
  "Let this buffer be one that follows what is typed."
  (unless (memq (current-buffer) contexture-live--buffers)
    (push (current-buffer) contexture-live--buffers)
    (add-hook 'after-revert-hook #'contexture-live--reverted nil t)
    (add-hook 'kill-buffer-hook #'contexture-live--killed nil t)
    (add-hook 'after-set-visited-file-name-hook #'contexture-live--renamed nil t))
  (unless contexture-live--timer
    (setq contexture-live--timer
          (run-with-idle-timer contexture-live-delay t #'contexture-live--push))))

(defun contexture-live--release ()
  "Let no item follow this buffer any more."
  (dolist (item contexture-live--items)
    (contexture-live--drop-overlay item)
    (remhash (contexture-live--item-id item) contexture-live--places))
  (mapc #'kill-local-variable
        '(contexture-live--items contexture-live--seen contexture-live--new
          contexture-live--file))
  (remove-hook 'after-revert-hook #'contexture-live--reverted t)
  (remove-hook 'kill-buffer-hook #'contexture-live--killed t)
  (remove-hook 'after-set-visited-file-name-hook #'contexture-live--renamed t)
  (setq contexture-live--buffers
        (cl-remove-if-not #'buffer-live-p
                          (delq (current-buffer) contexture-live--buffers)))
  (when (and contexture-live--timer (null contexture-live--buffers))
    (cancel-timer contexture-live--timer)
    (setq contexture-live--timer nil)))

(defun contexture-live--drop-overlay (item)
  "Delete the overlay of ITEM, which has no place from now on."
  (when (overlayp (contexture-live--item-overlay item))
    (delete-overlay (contexture-live--item-overlay item)))
  (setf (contexture-live--item-overlay item) 'none))

(defun contexture-live--find-item (id)
  "Return (BUFFER . ITEM) of the item ID, or nil."
  (let ((place (gethash id contexture-live--places)))
    (and (buffer-live-p (car place)) place)))

(defun contexture-live--forget-item (id)
  "Let the item ID follow no buffer any more."
  (pcase (contexture-live--find-item id)
    (`(,buffer . ,item)
     (with-current-buffer buffer
       (contexture-live--drop-overlay item)
       (remhash id contexture-live--places)
       (setq contexture-live--items (delq item contexture-live--items)
             contexture-live--new (delq item contexture-live--new))
       (unless contexture-live--items (contexture-live--release))))))

(defun contexture-live--overlay (id)
  "Return the overlay of the item ID in this buffer if it covers whole lines."
  (when-let* ((item (cdr (gethash id contexture-live--places)))
              (overlay (contexture-live--item-overlay item)))
    (and (overlayp overlay)
         (eq (overlay-buffer overlay) (current-buffer))
         (not (overlay-get overlay 'contexture-partial))
         overlay)))

(defun contexture-live--item-ids ()
  "Return the ids of the items that have a place in this buffer."
  (mapcar #'contexture-live--item-id
          (contexture-live--in-order contexture-live--items)))

(provide 'contexture-live)
;;; contexture-live.el ends here
