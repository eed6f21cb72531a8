;;; contexture-live-place.el --- Where live items are  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Finds the places of live items in buffers: of those that were just
;; taken there, and of those of which the server says that they follow a
;; visited file, whoever added them.  An item gets a place only where the
;; buffer has its very text.  Also what happens to them when a buffer is
;; reverted, renamed or killed.

;;; Code:

(require 'contexture-live)
(eval-when-compile (require 'subr-x))

(defvar contexture--live-off)
(defvar contexture-live--captured (make-hash-table :test #'eq :weakness 'key)
  "Hash table from texts that were taken to their bounds, pairs of markers.")

(defvar contexture-live--claimed (make-hash-table :test #'equal)
  "Hash table from (CONTEXT . VERSION) to t or a timer.
The value is t if the answer to an addition that made VERSION came first,
and a timer if the notification did.")

(defvar contexture-live--asking nil
  "Alist from contexts about which the server is asked to t.
The value `again' means that one changed meanwhile.")

;;;; Items that were just added

(defun contexture-live--captured (text beg end)
  "Remember that TEXT, which is about to be added, is between BEG and END."
  (puthash text (cons (copy-marker beg) (copy-marker end))
           contexture-live--captured))

(defun contexture-live--added (manager item text)
  "Let ITEM, the answer to an addition to MANAGER, follow its buffer.
TEXT is the text that was taken from there.  What the server read itself
becomes known like what others add."
  (mapc #'contexture-live--forget-item (plist-get item :evicted))
  (let ((watching contexture--live-watching))
    (when (and (or (not (plist-get item :live))
                   (contexture-live--claim-captured manager item text))
               watching)
      (contexture-live--note-claimed manager (plist-get item :version)))))

(defun contexture-live--claim-captured (manager item text)
  "Let ITEM of MANAGER follow the buffer from which TEXT was taken.
Return nil if that buffer no longer has it."
  (let* ((bounds (and text (gethash text contexture-live--captured)))
         (buffer (and bounds (marker-buffer (car bounds)))))
    (when buffer
      (remhash text contexture-live--captured)
      (with-current-buffer (or (buffer-base-buffer buffer) buffer)
        (prog1 (when (and buffer-file-name
                          (member (plist-get (plist-get item :metadata) :filename)
                                  (contexture-live--names)))
                 (contexture-live--claim manager item text bounds)
                 t)
          (set-marker (car bounds) nil)
          (set-marker (cdr bounds) nil))))))

(defun contexture-live--claim (manager item text bounds)
  "Let ITEM of MANAGER follow the text between BOUNDS, which was TEXT.
If it extends other items, it covers them too."
  (let* ((metadata (plist-get item :metadata))
         (lines (contexture-live--item-lines metadata))
         (ids (cons (plist-get item :id) (plist-get item :absorbed)))
         (others (delq nil (mapcar #'contexture-live--overlay ids)))
         (beg (apply #'min (marker-position (car bounds))
                     (mapcar #'overlay-start others)))
         (end (apply #'max (marker-position (cdr bounds))
                     (mapcar #'overlay-end others)))
         (held (contexture-live--item-held metadata))
         (told (list (and (null others) text) lines held nil)))
    (mapc #'contexture-live--forget-item (plist-get item :absorbed))
    (contexture-live--track (plist-get item :id) manager told
                            (and lines (list beg end (plist-get metadata :partial))))))

(defun contexture-live--item-held (metadata)
  "Return why the file of an item with METADATA does not count, or nil.
The value is that of `contexture-live--held-p'."
  (and (plist-get metadata :unsaved)
       (if (plist-get metadata :modified) 'unsaved 'form)))

(defun contexture-live--item-lines (metadata)
  "Return the first and last line in METADATA as a pair, or nil."
  (when-let* ((start (plist-get metadata :start-line)))
    (cons start (or (plist-get metadata :end-line) start))))

;;;; Changes of which an answer told all

(defun contexture-live--note-claimed (manager version)
  "Record that all is known about the change that gave MANAGER its VERSION."
  (when version
    (let* ((key (cons manager version))
           (timer (gethash key contexture-live--claimed)))
      (if (null timer)
          (puthash key t contexture-live--claimed)
        (when (timerp timer) (cancel-timer timer))
        (remhash key contexture-live--claimed)))))

(defun contexture-live--news (manager version own)
  "Ask about MANAGER, which got VERSION, unless an answer told all about that.
OWN is non-nil if this Emacs added an item.  The answer may come later."
  (let ((key (cons manager version)))
    (cond ((not own)
           (contexture-live--forget-claimed)
           (contexture-live--ask-about manager))
          ((gethash key contexture-live--claimed)
           (remhash key contexture-live--claimed))
          (t
           (puthash key
                    (run-at-time contexture-live-delay nil
                                 #'contexture-live--unclaimed key)
                    contexture-live--claimed)))))

(defun contexture-live--unclaimed (key)
  "Ask about the context of KEY, since no answer told of its version."
  (remhash key contexture-live--claimed)
  (contexture-live--ask-about (car key)))

(defun contexture-live--forget-claimed ()
  "Forget of which changes all is known, and wait for no more answers."
  (maphash (lambda (_ timer) (when (timerp timer) (cancel-timer timer)))
           contexture-live--claimed)
  (clrhash contexture-live--claimed))

;;;; Items of which the server tells

(defun contexture-live--names (&optional buffer)
  "Return the names of the file that BUFFER visits, or nil."
  (when-let* ((file (buffer-file-name buffer)))
    (delete-dups
     (list (expand-file-name file)
           (expand-file-name
            (or (buffer-local-value 'buffer-file-truename (or buffer (current-buffer)))
                file))))))

(defun contexture-live--all-names ()
  "Return the names of all visited files."
  (mapcan #'contexture-live--names (buffer-list)))

(defun contexture-live--ask-of (names)
  "Ask which live items, of whatever context, follow the files with NAMES."
  (when (and names (contexture-running-p))
    (contexture-request-async
     'list-items (list :filenames names)
     :success #'contexture-live--adopt-all :error #'ignore)))

(defun contexture-live--ask-about (manager)
  "Ask which items of MANAGER follow visited files.
A burst of changes costs two calls."
  (if (assoc manager contexture-live--asking)
      (setf (alist-get manager contexture-live--asking nil nil #'equal) 'again)
    (when-let* ((names (and (contexture-running-p) (contexture-live--all-names))))
      (push (cons manager t) contexture-live--asking)
      (cl-flet ((finish (then)
                  (let ((state (alist-get manager contexture-live--asking nil nil #'equal)))
                    (setf (alist-get manager contexture-live--asking nil t #'equal) nil)
                    (funcall then)
                    (when (eq state 'again) (contexture-live--ask-about manager)))))
        (contexture-request-async
         'list-items (list :manager manager :filenames names :brief t)
         :success (lambda (items)
                    (finish (lambda () (contexture-live--compare manager items))))
         :error (lambda (_) (finish #'ignore)))))))

(defun contexture-live--compare (manager items)
  "Follow ITEMS, the live ones of MANAGER in visited files, and no others.
Those that are new or that the server moved by itself are fetched."
  (let ((ids (mapcar (lambda (item) (plist-get item :id)) items)))
    (pcase-dolist (`(,id . ,holder) (contexture-live--known))
      (when (and (equal holder manager) (not (member id ids)))
        (contexture-live--forget-item id)))
    (when-let* ((new (cl-loop for item in items
                              unless (contexture-live--known-p manager item)
                              collect (plist-get item :id))))
      (contexture-request-async
       'list-items (list :manager manager :ids new)
       :success (lambda (items)
                  (contexture-live--adopt-all
                   (mapcar (lambda (item) (append item (list :manager manager)))
                           items)))
       :error #'ignore))))

(defun contexture-live--known ()
  "Return an alist from the ids of all items of buffers to their contexts."
  (cl-loop for buffer in contexture-live--buffers
           when (buffer-live-p buffer)
           append (mapcar (lambda (item)
                            (cons (contexture-live--item-id item)
                                  (contexture-live--item-manager item)))
                          (buffer-local-value 'contexture-live--items buffer))))

(defun contexture-live--known-p (manager item)
  "Return non-nil if ITEM of MANAGER has the lines that were told of it."
  (when-let* ((known (cdr (contexture-live--find-item (plist-get item :id)))))
    (setf (contexture-live--item-manager known) manager)
    (equal (nth 1 (contexture-live--item-told known))
           (contexture-live--item-lines (plist-get item :metadata)))))

(defun contexture-live--adopt-all (items)
  "Let ITEMS, which have their texts and managers, follow their buffers."
  (dolist (buffer (buffer-list))
    (when-let* ((names (contexture-live--names buffer)))
      (dolist (item items)
        (when (and (plist-get item :live)
                   (member (plist-get (plist-get item :metadata) :filename) names))
          (with-current-buffer buffer
            (save-excursion
              (save-restriction
                (widen)
                (contexture-live--adopt item)))))))))

(defun contexture-live--adopt (item)
  "Let ITEM follow this buffer, which is widened, if its text is there.
If it is not, an item that had a place keeps it."
  (let* ((metadata (plist-get item :metadata))
         (text (string-replace "\r\n" "\n" (plist-get item :content)))
         (lines (contexture-live--item-lines metadata))
         (bounds (if lines (contexture-live--bounds text metadata)
                   (cons (point-min) (point-max)))))
    (when bounds
      (let ((told (list (buffer-substring-no-properties (car bounds) (cdr bounds))
                        lines (contexture-live--item-held metadata)
                        (plist-get metadata :stale))))
        (unless lines (setcar told text))
        (contexture-live--track
         (plist-get item :id) (plist-get item :manager) told
         (and lines (list (car bounds) (cdr bounds) (plist-get metadata :partial))))))))

(defun contexture-live--bounds (text metadata)
  "Return the bounds of TEXT on the lines that METADATA names, or nil.
Else those where it is once in this buffer.  The final newline does not
count."
  (let ((place (contexture--line-position (plist-get metadata :start-line)))
        (end (progn (contexture--line-position
                     (cdr (contexture-live--item-lines metadata)))
                    (line-end-position)))
        (short (string-remove-suffix "\n" text)))
    (goto-char place)
    (cond ((contexture-live--at-p text place) (cons place (+ place (length text))))
          ((string-empty-p short) nil)
          ((contexture-live--at-p short place) (cons place (+ place (length short))))
          ((and (plist-get metadata :partial)
                (let ((case-fold-search nil)) (search-forward short (max end place) t)))
           (cons (match-beginning 0) (match-end 0)))
          (t (contexture-live--find text place (plist-get metadata :partial))))))

;;;; What becomes of buffers

(defun contexture-live--give-back ()
  "Tell the server that for items of this buffer only the file counts now."
  (contexture-live--tell
   (cl-loop for item in contexture-live--items
            for told = (contexture-live--item-told item)
            for saved = (contexture-live--item-saved item)
            when (or (nth 2 told) (nth 3 told))
            collect (if saved (contexture-live--update item saved t)
                      `(:id ,(contexture-live--item-id item)
                        :manager ,(contexture-live--item-manager item)
                        :metadata (:unsaved nil :modified nil :stale nil))))))

(defun contexture-live--reverted ()
  "Find the items of this buffer again, since its text was replaced."
  (contexture-live--give-back)
  (dolist (item contexture-live--items)
    (contexture-live--drop-overlay item)
    (setf (contexture-live--item-told item) nil))
  (contexture-live--ask-of (contexture-live--names)))

(defun contexture-live--killed ()
  "Tell the server the last of a buffer that is going away.
Edits that were not saved go with it."
  (if (contexture-live--held-p)
      (contexture-live--give-back)
    (contexture-live--push))
  (contexture-live--release))

(defun contexture-live--renamed ()
  "Let the items of this buffer follow its file if that was renamed.
If the text was only written to another file, they stay with the first."
  (let ((old contexture-live--file)
        (new (and buffer-file-name (expand-file-name buffer-file-name))))
    (cond ((equal old new))
          ((and new (not (file-remote-p old)) (not (file-exists-p old)))
           (setq contexture-live--file new
                 contexture-live--seen nil)
           (dolist (item contexture-live--items)
             (setf (contexture-live--item-told item) nil)))
          (t
           (contexture-live--give-back)
           (contexture-live--release)
           (contexture-live--opened)))))

(defun contexture-live--opened ()
  "Ask which live items follow the file that this buffer visits."
  (contexture-live--follow (contexture-live--names)))

;;;; Following the server

(defun contexture-live--connected ()
  "Follow the visited files that the server just reached has items of."
  (setq contexture-live--asking nil
        contexture--live-watching nil)
  (contexture-live--forget-claimed)
  (add-hook 'find-file-hook #'contexture-live--opened)
  (when (contexture-running-p)
    (contexture-live--follow (contexture-live--all-names))))

(defun contexture-live--follow (names)
  "Follow the items of the files with NAMES, if there are any.
From the first on, the server tells of changes.  Do nothing while
`contexture--live-off' is non-nil."
  (when (and names (not contexture--live-off) (contexture-running-p))
    (unless contexture--live-watching
      (setq contexture--live-watching t)
      (contexture--subscribe contexture--connection))
    (contexture-live--ask-of names)))

(defun contexture-live--disconnected ()
  "Let no item follow a buffer, since the server was left."
  (setq contexture--live-watching nil)
  (remove-hook 'find-file-hook #'contexture-live--opened)
  (dolist (buffer contexture-live--buffers)
    (when (buffer-live-p buffer)
      (with-current-buffer buffer (contexture-live--release)))))

(defun contexture-live--changed (method params)
  "Do what the server's notification METHOD with PARAMS needs here.
If a context changed, ask for its live items, unless they only followed
their sources: these are known here, or are in files.  If somebody wants
what is not saved, give it."
  (pcase method
    ('context-changed
     (let ((method (contexture--name (plist-get params :method))))
       (unless (equal method "refresh")
         (contexture-live--news (plist-get params :manager) (plist-get params :version)
                                (and (plist-get params :own)
                                     (equal method "add-context"))))))
    ('text-wanted
     (contexture-live--give (plist-get params :question) (plist-get params :path)))))

(defun contexture-live--give (question path)
  "Tell the server what changed, and answer its QUESTION.
Give the text of the file at PATH, unless that is nil or saved."
  (contexture-live--push)
  (let ((contexture--own-call t))
    (contexture-request-async
     'give-text (list :question question
                      :content (and path (contexture-live--unsaved path))))))

(defun contexture-live--unsaved (path)
  "Return the text of the modified buffer that visits the file at PATH, or nil.
The disk is not read: PATH has no links."
  (cl-loop for buffer in (buffer-list)
           for name = (buffer-local-value 'buffer-file-name buffer)
           for true = (buffer-local-value 'buffer-file-truename buffer)
           when (and name (buffer-modified-p buffer)
                     (or (string= path name)
                         (and true (string= path (expand-file-name true)))))
           return (with-current-buffer buffer
                    (save-restriction
                      (widen)
                      (buffer-substring-no-properties (point-min) (point-max))))))

(provide 'contexture-live-place)
;;; contexture-live-place.el ends here
