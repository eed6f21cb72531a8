;;; contexture-sets.el --- Choose, keep and thin out contexts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Commands for whole contexts.  `contexture-switch' chooses the context
;; that this buffer's commands work on; `contexture-save-set' and its kin
;; keep copies under a name; `contexture-remove' and `contexture-clear'
;; remove items without opening the list; `contexture-refresh' reads the
;; items' files again; `contexture-set-capacity' changes how many items a
;; context holds; `contexture-undo' undoes the last change, and
;; `contexture-redo' redoes it.

;;; Code:

(require 'contexture)
(require 'contexture-list)
(eval-when-compile (require 'subr-x))

(defvar contexture-set-history nil
  "History of chosen sets.")

;;;; Completion

(defun contexture-sets--annotate (alist describe)
  "Return a function that annotates a name of ALIST.
DESCRIBE is called with the value of the name in ALIST."
  (lambda (name)
    (if-let* ((entry (assoc name alist)))
        (concat (propertize " " 'display '(space :align-to 40))
                (contexture--visible (funcall describe (cdr entry))))
      "")))

(defun contexture-sets--age (seconds)
  "Return a phrase for the age of something made at SECONDS, Unix time."
  (let ((age (contexture-list--age
              (max 0 (- (truncate (float-time)) seconds)))))
    (if (equal age "now") "just now" (concat age " ago"))))

;;;; Removing and undoing

;;;###autoload
(defun contexture-remove (ids &optional name manager)
  "Remove the items IDS, a list, from the context MANAGER.
Interactively, remove the item of the text at point; if there is none or
several, or with a prefix argument, choose one.  NAME names the items in
the message; MANAGER is by default the one to which this buffer adds."
  (interactive
   (let ((item (contexture-sets--read-item "Remove item" current-prefix-arg)))
     (list (list (plist-get item :id))
           (contexture--description (plist-get item :metadata))
           (plist-get item :manager))))
  (let ((manager (or manager (contexture-current-manager))))
    (setq contexture--last-changed manager)
    (contexture--request-patiently
     'remove-items (list :manager manager :ids ids)
     :success (lambda (result)
                (contexture--message "Removed %s from %s; %s undoes it"
                         (or name
                             (contexture--count (plist-get result :removed) "item"))
                         (contexture--label manager)
                         (substitute-command-keys "\\[contexture-undo]"))))))

(defun contexture-sets--read-item (prompt ask)
  "Return the item at point; choose with PROMPT if that is unclear, or if ASK.
An item of lines around point is preferred to one of the whole file."
  (let* ((manager (contexture-current-context))
         (items (or (contexture--ask 'list-items
                                     (append (contexture--context-params manager)
                                             '(:brief t)))
                    (contexture--user-error "%s has no items" (contexture--capitalized
                                                   (contexture--label manager)))))
         (whole (cl-remove-if-not #'contexture-sets--here-p items))
         (here (or (cl-remove-if-not #'contexture-sets--lines-p whole) whole)))
    (if (and here (null (cdr here)) (not ask))
        (car here)
      (contexture-sets--choose-item
       prompt (if ask items (or here items)) (car (last here))))))

(defun contexture-sets--lines-p (item)
  "Return non-nil if ITEM is of certain lines, not of a whole file or buffer."
  (plist-get (plist-get item :metadata) :start-line))

(defun contexture-sets--here-p (item)
  "Return non-nil if ITEM is from this buffer or its file, at point's line."
  (let* ((metadata (plist-get item :metadata))
         (base (contexture--base-buffer))
         (file (buffer-file-name base))
         (filename (plist-get metadata :filename))
         (start (plist-get metadata :start-line))
         (line (line-number-at-pos nil t)))
    (and (if filename
             (and file (equal filename (expand-file-name file)))
           (equal (plist-get metadata :buffer) (buffer-name base)))
         (or (null start)
             (<= start line (or (plist-get metadata :end-line) start))))))

(defun contexture-sets--choose-item (prompt items default)
  "Ask with PROMPT for one of ITEMS, by default DEFAULT or the newest."
  (let* ((alist (contexture-sets--name-items (reverse items)))
         (default (or (car (rassq default alist)) (caar alist)))
         (name (completing-read
                (format-prompt prompt (contexture--visible default))
                (contexture--table
                 (mapcar #'car alist) 'contexture-item
                 (contexture-sets--annotate alist #'contexture-sets--item-text))
                nil t nil nil default)))
    (or (cdr (assoc name alist))
        (user-error "No item was chosen"))))

(defun contexture-sets--name-items (items)
  "Return an alist from unique names to ITEMS."
  (let (alist)
    (dolist (item items (nreverse alist))
      (let ((name (contexture--description (plist-get item :metadata))))
        (push (cons (if (assoc name alist)
                        (format "%s <%s>" name (plist-get item :id))
                      name)
                    item)
              alist)))))

(defun contexture-sets--item-text (item)
  "Return the annotation of ITEM."
  (format "%s, %s, %s" (contexture-list--kind item)
          (contexture--count (or (plist-get item :tokens) 0) "token")
          (contexture-sets--age (plist-get item :timestamp))))

;;;###autoload
(defun contexture-freeze (item &optional follow)
  "Make a snapshot of ITEM, which no longer follows its source.
It keeps its text, and whatever shows it says of when that is.  With
FOLLOW, the prefix argument, let it follow its source again.
Interactively, ITEM is that of the text at point; if there is none or
several, choose one."
  (interactive
   (list (contexture-sets--read-item
          (if current-prefix-arg "Let item follow its source" "Freeze item") nil)
         current-prefix-arg))
  (let ((manager (or (plist-get item :manager) (contexture-current-manager)))
        (name (contexture--description (plist-get item :metadata))))
    (setq contexture--last-changed manager)
    (contexture--request-patiently
     'freeze-items (list :manager manager :id (plist-get item :id)
                         :frozen (not follow))
     :success (lambda (_)
                (contexture--message "%s %s in %s"
                         (if follow "Following again:" "Frozen:")
                         name (contexture--label manager))))))

;;;###autoload
(defun contexture-clear ()
  "Empty the context to which this buffer adds.
`contexture-undo' brings it back."
  (interactive)
  (let ((manager (contexture-current-manager)))
    (setq contexture--last-changed manager)
    (contexture--request-patiently
     'clear-manager (list :manager manager)
     :success
     (lambda (result)
       (let ((removed (or (plist-get result :removed) 0)))
         (if (> removed 0)
             (contexture--message "Removed %s from %s; %s undoes it"
                      (contexture--count removed "item")
                      (contexture--label manager)
                      (substitute-command-keys "\\[contexture-undo]"))
           (contexture--message "%s has no items" (contexture--capitalized
                                  (contexture--label manager)))))))))

;;;###autoload
(defun contexture-undo ()
  "Undo the last change to this buffer's context.
With layers, that is the one that was changed last in this Emacs, or else
the one to which this buffer adds.  Repeat it to go further back.
`contexture-redo' brings back what was undone.  `contexture-menu' shows
beforehand what this would undo."
  (interactive)
  (contexture-sets--step 'undo :undone "Undid" "redoes"))

;;;###autoload
(defun contexture-redo ()
  "Redo the change to this buffer's context that was undone last.
Repeat it to go further.  A new change of the context forgets what could
be redone; that items followed their files is no change."
  (interactive)
  (contexture-sets--step 'redo :redone "Redid" "undoes"))

(defun contexture-sets--step (method what did reverses)
  "Call METHOD, `undo' or `redo', and report it.
WHAT is the member of its result that names the change.  DID begins the
report; REVERSES says what the opposite command does."
  (let ((manager (contexture-sets--manager-to-undo)))
    (setq contexture--last-changed manager)
    (contexture--request-patiently
     method (list :manager manager :describe t)
     :success
     (lambda (result)
       (contexture--message
        "%s %s in %s (%s)%s" did
        (contexture-sets--change-name (plist-get result what)
                                      (plist-get result :change))
        (contexture--label manager)
        (contexture--size (plist-get result :count)
                          (plist-get result :total-tokens))
        (if (equal (plist-get result what) "push-next") ""
          (format "; %s %s it"
                  (substitute-command-keys (if (eq method 'undo) "\\[contexture-redo]"
                                             "\\[contexture-undo]"))
                  reverses)))))))

(defun contexture-sets--change-name (method change)
  "Return a phrase for the change by METHOD.
CHANGE is what the server tells of it, or nil."
  (let ((count (or (plist-get change :count) 0))
        (name (contexture-sets--change method)))
    (cond ((plist-get change :set)
           (format "%s (%s)" name (contexture--visible (plist-get change :set))))
          ((or (= count 0) (not (string-match-p "\\`an? " name))) name)
          (t (format "%s of %s" name
                     (if (= count 1)
                         (contexture--description
                          (plist-get (car (plist-get change :items)) :metadata))
                       (contexture--count count "item")))))))

(defun contexture-sets--manager-to-undo ()
  "Return the name of the context whose last change is to be undone."
  (let ((context (contexture-current-context)))
    (if (and (listp context) (member contexture--last-changed context))
        contexture--last-changed
      (contexture-current-manager))))

(defun contexture-sets--change (method)
  "Return a phrase for the change by METHOD, a name from the server."
  (pcase (contexture--name method)
    ((or "add-context" "add-file" "add-tree") "an addition")
    ("remove-context" "a removal")
    ("clear-context" "the clearing")
    ("update-context" "an edit")
    ("move-context" "a move")
    ("transfer-items" "a move to or from another context")
    ("open-layers" "the taking over of items")
    ("pin-context" "a change of pins")
    ("freeze-items" "the freezing")
    ("refresh-context" "a refresh")
    ("load-set" "the loading of a set")
    ("save-set" "the saving of a set")
    ("drop-set" "the dropping of a set")
    ("configure-manager" "a change of capacity")
    ("drop-manager" "the dropping of the context")
    ("push-next" "a sending to an agent")
    (other other)))

;;;; Refreshing and making room

;;;###autoload
(defun contexture-refresh ()
  "Read the files of this buffer's context again, in all of its layers.
Text that moved within its file is found again; text that is gone from
its file stays as it is and is shown as stale."
  (interactive)
  (let ((context (contexture-current-context)))
    (contexture--call-each
     'refresh-items
     (mapcar (lambda (manager) (list :manager manager))
             (contexture--managers context))
     (lambda (result)
       (contexture--message "%s" (contexture-sets--refreshed-text context result)))
     #'contexture-show-error)))

(defun contexture-sets--refreshed-text (manager result)
  "Return the message for RESULT of refreshing MANAGER."
  (let* ((outcomes (mapcar (lambda (item) (plist-get item :outcome))
                           (plist-get result :items)))
         (count (lambda (&rest kinds)
                  (cl-count-if (lambda (outcome) (memq outcome kinds)) outcomes)))
         (parts (cl-loop for (words . kinds) in '(("changed" :updated)
                                                  ("moved within the file" :moved)
                                                  ("no longer found in the file" :stale)
                                                  ("whose file is gone" :missing))
                         for number = (apply count kinds)
                         when (> number 0) collect (format "%d %s" number words))))
    (format "Read the files of %s again: %s" (contexture--label manager)
            (if parts (string-join parts ", ") "nothing has changed"))))

;;;###autoload
(defun contexture-set-capacity (items)
  "Set the capacity of this buffer's context to ITEMS, from 1 to 1000.
If it holds more, the oldest items that are not pinned leave it;
`contexture-undo' brings them back."
  (interactive (list (contexture-sets--read-capacity)))
  (unless (and (natnump items) (<= 1 items contexture--max-items))
    (user-error "A context holds from 1 to %d items" contexture--max-items))
  (let ((manager (contexture-current-manager)))
    (contexture--request-patiently
     'configure-manager (list :manager manager :max-items items)
     :success
     (lambda (result)
       (let ((evicted (length (plist-get result :evicted))))
         (contexture--message "%s now holds at most %s%s"
                  (contexture--capitalized (contexture--label manager))
                  (contexture--count items "item")
                  (if (> evicted 0)
                      (format "; the oldest %s left it, and %s brings them back"
                              (contexture--count evicted "item")
                              (substitute-command-keys "\\[contexture-undo]"))
                    "")))))))

(defun contexture-sets--read-capacity ()
  "Read the maximum number of items for this buffer's context."
  (let* ((manager (contexture-current-manager))
         (entry (cl-find manager (contexture--ask 'list-managers nil)
                         :key (lambda (entry) (plist-get entry :manager))
                         :test #'equal))
         (now (or (plist-get entry :max-items)
                  (plist-get (plist-get (contexture--ask 'server-info nil) :limits)
                             :max-items))))
    (read-number (contexture--format "Maximum number of items in %s (1 to %d): "
                                     (contexture--label manager)
                                     contexture--max-items)
                 now)))

;;;; Sets

;;;###autoload
(defun contexture-save-set (name)
  "Save a copy of this buffer's context as the set called NAME.
This replaces a set of that name; `contexture-undo' brings it back."
  (interactive
   (progn (contexture-sets--check-not-empty)
          (list (contexture-sets--read-set "Save as set" nil))))
  (let ((manager (contexture-current-manager)))
    (contexture--request-patiently
     'save-set (list :manager manager :name name)
     :success (lambda (result)
                (contexture--message "Saved %s of %s as the set %s%s"
                         (contexture--count (plist-get result :count) "item")
                         (contexture--label manager) name
                         (if (plist-get result :replaced)
                             (substitute-command-keys
                              " in place of the one before; \\[contexture-undo] undoes it")
                           ""))))))

;;;###autoload
(defun contexture-load-set (name &optional append)
  "Replace this buffer's context with the items of the set NAME.
With APPEND, the prefix argument, add them to the context instead.
`contexture-undo' brings the old items back."
  (interactive (list (contexture-sets--read-set
                      (if current-prefix-arg "Append set" "Load set") t)
                     current-prefix-arg))
  (let ((manager (contexture-current-manager)))
    (contexture--request-patiently
     'load-set (list :manager manager :name name
                     :mode (if append :append :replace))
     :success (lambda (result)
                (let ((left (length (plist-get result :left))))
                  (contexture--message "Loaded %s of the set %s into %s%s; %s undoes it"
                           (contexture--count (length (plist-get result :ids)) "item")
                           name (contexture--label manager)
                           (if (> left 0)
                               (format ", which lost %s" (contexture--count left "item"))
                             "")
                           (substitute-command-keys "\\[contexture-undo]")))))))

;;;###autoload
(defun contexture-drop-set (name)
  "Delete the set called NAME.  `contexture-undo' brings it back."
  (interactive (list (contexture-sets--read-set "Drop set" t)))
  (contexture--request-patiently
   'drop-set (list :manager (contexture-current-manager) :name name)
   :success (lambda (_)
              (contexture--message "Dropped the set %s; %s undoes it" name
                       (substitute-command-keys "\\[contexture-undo]")))))

(defun contexture-sets--check-not-empty ()
  "Signal an error if this buffer's context has nothing to save."
  (let ((manager (contexture-current-manager)))
    (when (eql 0 (plist-get (contexture--ask 'count-items
                                             (list :manager manager))
                            :count))
      (contexture--user-error "%s has no items to save"
                  (contexture--capitalized (contexture--label manager))))))

(defun contexture-sets--read-set (prompt existing)
  "Read the name of a set with PROMPT; of one that exists if EXISTING."
  (let* ((alist (mapcar (lambda (set) (cons (plist-get set :name) set))
                        (contexture--ask 'list-sets nil))))
    (when (and existing (null alist))
      (user-error "There are no sets yet; `contexture-save-set' saves one"))
    (let ((name (minibuffer-with-setup-hook
                    (if existing #'ignore #'contexture-sets--allow-spaces)
                  (completing-read
                   (concat prompt ": ")
                   (contexture--table
                    (mapcar #'car alist) 'contexture-set
                    (contexture-sets--annotate alist #'contexture-sets--set-text))
                   nil existing nil 'contexture-set-history))))
      (if (string-blank-p name)
          (user-error "No name was given")
        name))))

(defun contexture-sets--allow-spaces ()
  "Let space and question mark insert themselves in this minibuffer.
They may be part of names, which complete with TAB."
  (use-local-map
   (let ((map (make-sparse-keymap)))
     (define-key map " " #'self-insert-command)
     (define-key map "?" #'self-insert-command)
     (make-composed-keymap map (current-local-map)))))

(defun contexture-sets--set-text (set)
  "Return the annotation of SET."
  (format "%s, %s" (contexture--size (plist-get set :count)
                                     (plist-get set :tokens))
          (contexture-sets--age (plist-get set :created))))

;;;; Which context

;;;###autoload
(defun contexture-switch (manager)
  "Make this buffer's commands work on the context named MANAGER.
That context need not exist yet.  If MANAGER is nil, or with empty input
or a prefix argument, `contexture-scope' decides again."
  (interactive
   (progn (contexture-sets--check-buffer)
          (list (unless current-prefix-arg (contexture-sets--read-manager)))))
  (contexture-sets--check-buffer)
  (setq contexture-manager
        (unless (or (null manager) (string-blank-p manager)) manager))
  (when (bound-and-true-p contexture-mode)
    (contexture-mode -1)                ; its marks are those of the other context
    (contexture-mode 1))
  (force-mode-line-update)
  (contexture--message "Commands in this buffer now work on %s"
           (contexture--label (contexture-current-context))))

(defun contexture-sets--check-buffer ()
  "Signal an error in one of Contexture's own buffers."
  (when (string-prefix-p "*contexture: " (buffer-name))
    (user-error "This is one of Contexture's own buffers; switch in the buffer that you work on")))

(defun contexture-sets--read-manager ()
  "Read the name of a context, old or new; the empty string resets."
  (let* ((usual (let ((contexture-manager nil)) (contexture-current-context)))
         (entries (contexture-sets--managers))
         (alist (cl-mapcar (lambda (candidate entry) (cons (car candidate) entry))
                           (contexture--candidates entries) entries))
         (chosen
          (minibuffer-with-setup-hook #'contexture-sets--allow-spaces
            (completing-read (format-prompt "Work on context"
                                            (if (listp usual) (contexture--label usual)
                                              (contexture--visible usual)))
                             (contexture--table
                              (mapcar #'car alist) 'contexture-context
                              (contexture-sets--annotate
                               alist #'contexture-sets--manager-text))
                             nil 'confirm)))) ; ask before taking a new name
    (or (plist-get (cdr (assoc chosen alist)) :manager) chosen)))

(defun contexture-sets--managers ()
  "Return the entries of all contexts, as plists.
Contexts of sessions, which may be empty, have the session's name too."
  (let ((managers (contexture--note-labels (contexture--ask 'list-managers nil))))
    (dolist (session (contexture--ask 'list-sessions nil) managers)
      (let* ((name (plist-get session :manager))
             (manager (cl-find name managers :test #'equal
                               :key (lambda (entry) (plist-get entry :manager)))))
        (if manager
            (nconc manager (list :session (plist-get session :session)))
          (setq managers
                (nconc managers
                       (list (list :manager name :count 0 :tokens 0
                                   :session (plist-get session :session))))))))))

(defun contexture-sets--manager-text (entry)
  "Return the annotation of ENTRY, one of `contexture-sets--managers'."
  (concat (if-let* ((session (plist-get entry :session)))
              (format "session %s, " session)
            "")
          (contexture--size (plist-get entry :count) (plist-get entry :tokens))
          (if-let* ((newest (plist-get entry :newest)))
              (concat ", " (contexture-sets--age newest))
            "")))

(provide 'contexture-sets)
;;; contexture-sets.el ends here
